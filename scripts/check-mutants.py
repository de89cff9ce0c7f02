#!/usr/bin/env python3
"""Says which of the recorded mistakes the fast tests find.

test/Mutants/mutants.toml has mistakes that somebody might make: a name, a file, a text that is in it once, and what a
mistake would put in its place. In a work tree of the last commit each is made by itself, built and given to the tests of
`make check-fast`, the quickest first, until one fails. A mistake that does not compile counts as none.

    scripts/check-mutants.py [NAME...]     all of them, or those with these names, in that order
    scripts/check-mutants.py --applies     only says whether each text is in its file, once

Exit status: 0 when at least nine of ten are found, 2 when fewer are, 1 when something else fails.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import time
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIST = ROOT / "test/Mutants/mutants.toml"
TREE = ROOT / "build/mutants"
LEAST = 0.9


def read(path):
    """The mistakes of a list; the first thing that is wrong with it ends the program."""
    mutants = tomllib.loads(path.read_text())["mutant"]
    names = [mutant["name"] for mutant in mutants]
    for name in names:
        if names.count(name) > 1:
            sys.exit(f"check-mutants: {path}: two mistakes are named '{name}'")
    return mutants


def problem_of(mutant, root):
    """Why a mistake cannot be made; "" where it can."""
    file = root / mutant["file"]
    if not file.is_file():
        return f"there is no {mutant['file']}"
    count = file.read_text().count(mutant["is"])
    if count != 1:
        return f"its text is {count} times in {mutant['file']}, and must be there once"
    return "" if mutant["is"] != mutant["becomes"] else "it changes nothing"


def applies(mutants, root=ROOT):
    problems = [(mutant["name"], problem_of(mutant, root)) for mutant in mutants]
    return [f"'{name}': {problem}" for name, problem in problems if problem]


class Tree:
    """A work tree of the last commit, in which one mistake at a time is made."""

    def __init__(self, timeout):
        self.timeout = str(timeout)
        self.rounds = [".*"]  # of tests, by their names
        environment = {"CCACHE_BASEDIR": str(TREE), "CCACHE_NOHASHDIR": "1"}
        self.environment = {**os.environ, **environment}
        self.git("worktree", "prune")
        if (TREE / ".git").exists():
            self.git("-C", TREE, "checkout", "--quiet", "--detach", "--force", "HEAD")
            self.git("-C", TREE, "reset", "--quiet", "--hard", self.git("rev-parse", "HEAD"))
        else:
            self.git("worktree", "add", "--quiet", "--detach", TREE, "HEAD")

    @staticmethod
    def git(*arguments):
        done = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"check-mutants: git {' '.join(map(str, arguments))}: {done.stderr.strip()}")
        return done.stdout.strip()

    def run(self, *command):
        return subprocess.run(command, cwd=TREE, env=self.environment, capture_output=True, text=True)

    def build(self):
        done = self.run("cmake", "--preset", "release")
        return done if done.returncode else self.run("cmake", "--build", "--preset", "release", "--target", "fast-tests")

    def failing_test(self):
        """The name of the first test that fails; "" when all pass."""
        for names in self.rounds:
            done = self.run("ctest", "--test-dir", "build/release", "-L", "^fast$", "-R", names, "-j", "2", "--stop-on-failure",
                            "--no-tests=error", "--timeout", self.timeout)
            if done.returncode:
                failed = re.findall(r"^\s+\d+ - (\S+) \(", done.stdout, re.M)
                return failed[0] if failed else "ctest"
        return ""

    def quickest_first(self):
        """Divides the tests by the time that they took last: ctest itself begins with those that take longest."""
        lines = (TREE / "build/release/Testing/Temporary/CTestCostData.txt").read_text().split("---")[0].splitlines()
        names = [line.split()[0] for line in sorted(lines, key=lambda line: float(line.split()[2]))]
        third = -(-len(names) // 3)
        self.rounds = [f"^({'|'.join(names[begin:begin + third])})$" for begin in range(0, len(names), third)]

    def outcome_of(self, mutant):
        file = TREE / mutant["file"]
        text = file.read_text()
        file.write_text(text.replace(mutant["is"], mutant["becomes"]))
        try:
            if self.build().returncode:
                return None
            return self.failing_test()
        finally:
            file.write_text(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--applies", action="store_true", help="only look for the texts")
    parser.add_argument("--timeout", type=int, default=300, metavar="SECONDS",
                        help="what a test may take, more where others are at work; a mistake that makes it hang is found")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    mutants = read(LIST)
    unknown = set(options.names) - {mutant["name"] for mutant in mutants}
    if unknown:
        sys.exit(f"check-mutants: {LIST} has no '{sorted(unknown)[0]}'")
    problems = applies(mutants)
    if problems:
        sys.exit("check-mutants: " + "\n".join(problems) + f"\nchange {LIST.relative_to(ROOT)} as the code has changed")
    if options.applies:
        print(f"{len(mutants)} mistakes can be made")
        return

    tree = Tree(options.timeout)
    done = tree.build()
    if done.returncode:
        sys.exit("check-mutants: without a mistake it does not build\n" + done.stdout[-4000:] + done.stderr[-4000:])
    if failed := tree.failing_test():
        sys.exit(f"check-mutants: without a mistake {failed} fails, so no failure would say anything")
    tree.quickest_first()
    by_name = {mutant["name"]: mutant for mutant in mutants}
    chosen = [by_name[name] for name in options.names or by_name]
    found = 0
    for mutant in chosen:
        begin = time.monotonic()
        failed = tree.outcome_of(mutant)
        if failed is None:
            sys.exit(f"check-mutants: with '{mutant['name']}' it does not build; a mistake has to")
        found += bool(failed)
        outcome = f"found by {failed}" if failed else "not found"
        print(f"{mutant['name']}: {outcome} ({time.monotonic() - begin:.0f} s)", flush=True)
    print(f"{found} of {len(chosen)} mistakes are found")
    sys.exit(0 if found >= LEAST * len(chosen) else 2)


if __name__ == "__main__":
    main()
