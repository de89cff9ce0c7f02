#!/usr/bin/env python3
"""Counts test cases over all kinds of tests. The last line is "N passed, N failed, N skipped"; the one before says what
this machine has of what some tests need, so that what was skipped explains itself.

A results folder holds ctest.xml (JUnit, from ctest --output-junit), one file per ctest entry NAME that has cases,
gtest/NAME.xml (from GTEST_OUTPUT) or unittest/NAME.xml (from test/Execution/tools.py), and lit.xml (from lit
--xunit-xml-output). A ctest entry with such a file counts with its cases; any other entry counts as one. Disabled cases
count as skipped.

Exit status: 0 when nothing failed and something passed, 1 otherwise.
"""

import argparse
import os
import pathlib
import socket
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from typing import NamedTuple


class Counts(NamedTuple):
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other):
        return Counts(*(a + b for a, b in zip(self, other)))

    def __str__(self):
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


PASSED, FAILED, SKIPPED = Counts(passed=1), Counts(failed=1), Counts(skipped=1)


def case_verdict(case) -> Counts:
    if case.find("failure") is not None or case.find("error") is not None:
        return FAILED
    skipped = case.find("skipped")
    if skipped is not None and skipped.get("message", "").startswith("Unable to find executable"):
        # ctest counts a test that was never built among the skipped ones.
        return FAILED
    if skipped is not None or case.get("status") in ("notrun", "disabled"):
        return SKIPPED
    return PASSED


def count_cases(path: pathlib.Path) -> Counts:
    """Of a JUnit file; a file that is missing or broken off has none."""
    try:
        cases = ElementTree.parse(path).getroot().iter("testcase")
    except (OSError, ElementTree.ParseError):
        return Counts()
    return sum(map(case_verdict, cases), Counts())


def inner_cases(results: pathlib.Path, name: str) -> Counts:
    """Of the ctest entry `name`; none where it counts as one."""
    files = [results / "lit.xml"] if name == "lit" else [results / kind / f"{name}.xml" for kind in ("gtest", "unittest")]
    return sum(map(count_cases, files), Counts())


def summarize(results: pathlib.Path) -> tuple[Counts, list[str]]:
    """Counts over a results folder, and the names of the ctest entries that failed."""
    total, failures = Counts(), []
    for entry in ElementTree.parse(results / "ctest.xml").getroot().iter("testcase"):
        name = entry.get("name")
        verdict = case_verdict(entry)
        inner = inner_cases(results, name)
        if verdict == FAILED:
            failures.append(name)
            # A crash or a timeout fails the entry without failing a case.
            total += inner._replace(failed=max(inner.failed, 1))
        elif verdict == PASSED and inner != Counts():
            total += inner
        else:
            total += verdict
    return total, failures


def slowest(results: pathlib.Path, count: int = 10) -> list[str]:
    """A line each for the ctest entries that took longest."""
    entries = [(float(entry.get("time") or 0), entry.get("name"))
               for entry in ElementTree.parse(results / "ctest.xml").getroot().iter("testcase")]
    return [f"{seconds:7.1f} s  {name}" for seconds, name in sorted(entries, reverse=True)[:count] if seconds > 0]


def capabilities() -> dict[str, bool]:
    """Capabilities that some tests need and some machines lack."""
    try:
        flags = next((line.split() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
                      if line.startswith("flags")), [])
    except OSError:
        flags = []

    def has_namespaces():
        # With a link between two of them, as the tests of ranks on two hosts have.
        command = ["unshare", "--net", "ip", "link", "add", "link0", "type", "veth", "peer", "name", "link1"]
        try:
            return subprocess.run(command, capture_output=True, timeout=10, check=False).returncode == 0
        except (OSError, subprocess.TimeoutExpired):
            return False

    def has_ipv6():
        try:
            with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as listener:
                listener.bind(("::1", 0))
            return True
        except OSError:
            return False

    return {"AVX512-BF16": "avx512_bf16" in flags, "AMX": "amx_bf16" in flags, "network namespaces": has_namespaces(),
            "IPv6": has_ipv6(), "NVIDIA card": any(pathlib.Path("/dev").glob("nvidia[0-9]*"))}


def main(argv) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=pathlib.Path, help="folder with ctest.xml, lit.xml, gtest/, unittest/")
    parser.add_argument("--step", action="append", default=[], metavar="NAME=passed|failed|skipped",
                        help="a check that ran outside ctest, or that could not look")
    arguments = parser.parse_args(argv)

    try:
        total, failures = summarize(arguments.results)
        longest = slowest(arguments.results)
    except (OSError, ElementTree.ParseError) as error:
        print(f"summarize-tests: cannot read the results of ctest: {error}", file=sys.stderr)
        total, failures, longest = FAILED, ["ctest"], []
    for step in arguments.step:
        name, _, verdict = step.partition("=")
        verdicts = {"passed": PASSED, "failed": FAILED, "skipped": SKIPPED}
        if verdict not in verdicts:
            parser.error(f"--step {step}: write NAME=passed, NAME=failed or NAME=skipped")
        total += verdicts[verdict]
        if verdict == "failed":
            failures.append(name)

    print()
    if longest:
        print("slowest:", *longest, sep="\n")
    if failures:
        print("failed: " + ", ".join(failures))
    limit = os.environ.get("BOWLINE_TARGET_CPU")
    print("this machine: " + ", ".join(f"{name} {'yes' if has else 'no'}" for name, has in capabilities().items()) +
          (f"; taken for {limit}" if limit else ""))
    # Alone on its line and the last one: continuous integration reads it.
    print(total, flush=True)
    return 0 if total.failed == 0 and total.passed > 0 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
