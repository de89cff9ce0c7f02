#!/usr/bin/env python3
"""Checks what ptxas said of device functions: none may use local memory, neither for spilled registers nor for arrays.

  scripts/check-ptxas.py LOG

LOG is the output of nvcc or ptxas with -v. Each function that has a stack frame or spills is one line on stderr:
FUNCTION for ARCHITECTURE: what it uses; what to do. Exit status: 0 when there is none, 1 otherwise, also when the log
speaks of no function.
"""

import pathlib
import re
import sys

ENTRY = re.compile(r"Compiling entry function '([^']+)' for '([^']+)'")
PROPERTIES = re.compile(r"Function properties for (\S+)")
USES = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")


def check(log: str) -> tuple[int, list[str]]:
    """The number of entry functions, and the errors by function."""
    entries = 0
    errors = []
    architecture = "?"
    function = "?"
    for line in log.splitlines():
        if match := ENTRY.search(line):
            entries += 1
            function, architecture = match.groups()
        elif match := PROPERTIES.search(line):
            function = match[1]
        elif match := USES.search(line):
            frame, stores, loads = map(int, match.groups())
            if frame or stores or loads:
                errors.append(
                    f"{function} for {architecture}: {frame} bytes of stack, {stores} of spill stores, {loads} of spill"
                    " loads; give each thread less to keep, or index arrays by constants alone"
                )
    return entries, errors


def main() -> int:
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    entries, errors = check(pathlib.Path(sys.argv[1]).read_text())
    for error in errors:
        print(error, file=sys.stderr)
    if entries == 0:
        print(f"{sys.argv[1]}: speaks of no function; was nvcc called with -Xptxas -v?", file=sys.stderr)
        return 1
    print(f"ptxas: {entries} functions, {len(errors)} with local memory")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
