#!/usr/bin/env python3
"""Checks that files compiled for an instruction set define no function that others may define too.

Linkers keep one copy of an inline function. Where that is the copy of a file compiled for an instruction set, code for
any processor calls it (kernels/cpu/isa/isa.h). Each find is one line on stderr: FILE: defines what; what to do.

Exit status: 0 when there is none, 1 otherwise.
"""

import argparse
import pathlib
import re
import subprocess
import sys

SETS = ("avx2", "avx512", "avx512bf16", "amx")
# "address type name": V and W are weak symbols, u unique ones. Names that compilers make up begin with other letters.
SHARED = re.compile(r"^\S+ [VWu] (?=[a-z])(?P<name>.*)$")
OWN = re.compile(r"\bisa_\w+::|\(anonymous namespace\)")


def shared_names(path: pathlib.Path) -> list[str]:
    listed = subprocess.run(["nm", "--defined-only", "-C", path], check=True, capture_output=True, text=True).stdout
    return [found["name"] for line in listed.splitlines() if (found := SHARED.match(line)) and not OWN.search(found["name"])]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path, help="where kernels were built")
    folder = parser.parse_args().folder
    status = 0
    for isa in SETS:
        files = sorted(folder.glob(f"**/bowline_kernels_{isa}.dir/**/*.o"))
        if not files:
            print(f"{folder}: has no files for {isa}; mend the names in this script", file=sys.stderr)
            status = 1
        for path in files:
            for name in shared_names(path):
                print(f"{path}: defines {name}, which code for any processor may call; make it a template over a type of the "
                      "file's, or give it internal linkage", file=sys.stderr)
                status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
