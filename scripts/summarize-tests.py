#!/usr/bin/env python3
"""Counts test cases over all kinds of tests and prints "N passed, N failed" as the last line.

A results folder holds ctest.xml (JUnit, from ctest --output-junit), gtest/NAME.xml (from GTEST_OUTPUT, one per
GoogleTest binary NAME) and lit.xml (from lit --xunit-xml-output). A ctest entry that is a GoogleTest binary or lit counts
with its cases; any other entry counts as one. Skipped and disabled cases count neither way.

Exit status: 0 when nothing failed and something passed, 1 otherwise.
"""

import argparse
import pathlib
import sys
import xml.etree.ElementTree as ElementTree
from typing import NamedTuple, Optional


class Counts(NamedTuple):
    passed: int
    failed: int

    def __add__(self, other):
        return Counts(self.passed + other.passed, self.failed + other.failed)


def case_verdict(case) -> Optional[bool]:
    """True: passed; False: failed; None: did not run."""
    if case.find("failure") is not None or case.find("error") is not None:
        return False
    skipped = case.find("skipped")
    if skipped is not None and skipped.get("message", "").startswith("Unable to find executable"):
        # ctest counts a test that was never built among the skipped ones.
        return False
    if skipped is not None or case.get("status") in ("notrun", "disabled"):
        return None
    return True


def count_cases(path: pathlib.Path) -> Counts:
    """Of a JUnit file; a file that is missing or broken off has none."""
    try:
        cases = ElementTree.parse(path).getroot().iter("testcase")
    except (OSError, ElementTree.ParseError):
        return Counts(0, 0)
    verdicts = [case_verdict(case) for case in cases]
    return Counts(verdicts.count(True), verdicts.count(False))


def summarize(results: pathlib.Path) -> tuple[Counts, list[str]]:
    """Counts over a results folder, and the names of the ctest entries that failed."""
    total, failures = Counts(0, 0), []
    for entry in ElementTree.parse(results / "ctest.xml").getroot().iter("testcase"):
        name = entry.get("name")
        verdict = case_verdict(entry)
        inner_file = results / "lit.xml" if name == "lit" else results / "gtest" / f"{name}.xml"
        inner = count_cases(inner_file)
        if verdict is False:
            failures.append(name)
            # A crash or a timeout fails the entry without failing a case.
            total += Counts(inner.passed, max(inner.failed, 1))
        elif verdict is True:
            total += inner if inner != Counts(0, 0) else Counts(1, 0)
    return total, failures


def main(argv) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=pathlib.Path, help="folder with ctest.xml, lit.xml, gtest/")
    parser.add_argument("--step", action="append", default=[], metavar="NAME=passed|failed",
                        help="a check that ran outside ctest")
    arguments = parser.parse_args(argv)

    try:
        total, failures = summarize(arguments.results)
    except (OSError, ElementTree.ParseError) as error:
        print(f"summarize-tests: cannot read the results of ctest: {error}", file=sys.stderr)
        total, failures = Counts(0, 1), ["ctest"]
    for step in arguments.step:
        name, _, verdict = step.partition("=")
        if verdict not in ("passed", "failed"):
            parser.error(f"--step {step}: write NAME=passed or NAME=failed")
        total += Counts(1, 0) if verdict == "passed" else Counts(0, 1)
        if verdict == "failed":
            failures.append(name)

    print()
    if failures:
        print("failed: " + ", ".join(failures))
    # Alone on its line and the last one: continuous integration reads it.
    print(f"{total.passed} passed, {total.failed} failed", flush=True)
    return 0 if total.failed == 0 and total.passed > 0 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
