#!/usr/bin/env python3
"""Counts where code knows a target by its name, outside of the target's own folders.

A target's description (targets/NAME) answers what passes, tools and the checker ask, so that they know none by its name,
and a new one touches none of them. A place is a line of code below the folders that share targets with its name as a word
or as part of one, in any case: "cuda", kCudaAlignment. Comments count too. Folders of a target are those called by its
name, or by what it is there for: see OWN.

--list prints the places. Each file with more places than ALLOWED says is one line on stderr.

Exit status: 0 when there are no more places than allowed, 1 otherwise.
"""

import argparse
import pathlib
import re
import sys

# The default target is a word of many meanings, and its folders are those that others build on.
DEFAULT = "cpu"
SHARED = ("checker", "compiler", "dialects", "frontends", "passes", "targets", "runtime/drivers", "runtime/executor", "runtime/hal",
          "runtime/plan", "runtime/tools", "runtime/train")
SUFFIXES = {".h", ".cc", ".cpp", ".td", ".fbs", ".txt"}
# Folders below SHARED that are a target's, besides those with its name.
OWN = {"cuda": ("compiler/Codegen/Gpu",), "discrete": ("compiler/Codegen/Discrete",)}
# Where a target has to be named: its registration, the folder of its driver, and the sources of its folders in the list
# of a library.
ALLOWED = {
    "targets/CMakeLists.txt": 1,
    "runtime/drivers/CMakeLists.txt": 1,
    "compiler/Codegen/CMakeLists.txt": 1,
    "checker/DeviceCode.cpp": 2,  # reads images of the format cubin, whose machine has this name
}


def targets_of(root: pathlib.Path) -> list[str]:
    text = (root / "targets/CMakeLists.txt").read_text(encoding="utf-8")
    match = re.search(r"^set\(targets ([^)]+)\)", text, re.MULTILINE)
    if not match:
        raise SystemExit("targets/CMakeLists.txt: there is no line 'set(targets NAME ...)'")
    return [name for name in match.group(1).split() if name != DEFAULT]


def places_of(root: pathlib.Path, target: str) -> list[tuple[str, int, str]]:
    own = OWN.get(target, ())
    name = re.compile(re.escape(target), re.IGNORECASE)
    places = []
    for folder in SHARED:
        for path in sorted((root / folder).rglob("*")):
            file = path.relative_to(root).as_posix()
            if path.suffix not in SUFFIXES or target in path.parts or any(file.startswith(f"{f}/") for f in own):
                continue
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                if name.search(line):
                    places.append((file, number, line.strip()))
    return places


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("--list", action="store_true", help="print the places")
    args = parser.parse_args()
    status = 0
    for target in targets_of(args.root):
        places = places_of(args.root, target)
        if args.list:
            for file, number, line in places:
                print(f"{target}: {file}:{number}: {line}")
        for file in sorted({place[0] for place in places}):
            there = [place for place in places if place[0] == file]
            if len(there) > ALLOWED.get(file, 0):
                status = 1
                print(f"{file}:{there[0][1]}: names the target '{target}' in {len(there)} lines, and may in "
                      f"{ALLOWED.get(file, 0)}; ask its description (targets/target.h)", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
