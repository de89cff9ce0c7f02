#!/usr/bin/env python3
"""Checks that docs/architecture.md lists the folders that there are, and for each phase the folders of its passes.

The table `<!-- folders -->` has a row for each folder of the first two levels that holds files, `test` excepted, which has
one row. The table `<!-- phases -->` has the phases of compiler/Pipelines/Phase.cpp in order; in its third column are the
folders whose Passes.td, or whose header, declares a pass of a step of that phase in compiler/Pipelines/Pipeline.cpp.
Passes of MLIR have no folder. Each violation is one line on stderr: FILE:LINE: what; what to do.

Exit status: 0 when page and tree agree, 1 otherwise.
"""

import argparse
import pathlib
import re
import sys

from markdown_tables import TableError, names_in, read_table

PAGE = "docs/architecture.md"
TOP_FOLDERS = ("compiler", "dialects", "frontends", "kernels", "passes", "runtime", "targets")
PIPELINE = "compiler/Pipelines/Pipeline.cpp"
PHASES = "compiler/Pipelines/Phase.cpp"


def folders_of(root: pathlib.Path) -> set[str]:
    """The folders that the page lists: those with a file somewhere below them."""
    found = {"test"}
    for top in TOP_FOLDERS:
        for path in root.glob(f"{top}/*"):
            if path.is_dir() and path.name != "__pycache__" and any(below.is_file() for below in path.rglob("*")):
                found.add(path.relative_to(root).as_posix())
    return found


def check_folders(root: pathlib.Path) -> list[str]:
    rows = read_table(root / PAGE, "folders", columns=2)
    there, errors, listed = folders_of(root), [], set()
    for row in rows:
        folder = row.cells[0]
        if folder in listed:
            errors.append(f"{PAGE}:{row.line}: lists '{folder}' twice; remove one row")
        elif folder not in there:
            errors.append(f"{PAGE}:{row.line}: lists '{folder}', which is no folder of the first two levels with files; "
                          "remove the row, or mend its name")
        listed.add(folder)
    errors += [f"{PAGE}:{rows[0].line}: does not list '{folder}'; add a row that says what it holds"
               for folder in sorted(there - listed)]
    return errors


STEP = re.compile(r'\bstep\("(?P<name>[\w-]+)", Phase::(?P<phase>\w+)')
CREATE = re.compile(r"\bcreate(\w+)\(")


def declaring_folders(root: pathlib.Path) -> dict[str, str]:
    """The folder of each pass by the name of its class, or of the function that creates it."""
    folders = {}
    for path in sorted((root / "passes").glob("*/Passes.td")):
        for name in re.findall(r"^def (\w+) : Pass<", path.read_text(encoding="utf-8"), re.MULTILINE):
            folders[name] = path.parent.relative_to(root).as_posix()
    for path in sorted((root / "compiler").glob("*/*.h")):
        # Passes of compiler/Pipelines run others.
        if path.parent.name != "Pipelines":
            for name in re.findall(r"> create(\w+)\(", path.read_text(encoding="utf-8")):
                folders[name] = path.parent.relative_to(root).as_posix()
    return folders


def phases_of(root: pathlib.Path) -> dict[str, set[str]]:
    """The folders of the steps of each phase, in the order of phases."""
    names = re.findall(r"\{Phase::(\w+), \"(\w+)\"", (root / PHASES).read_text(encoding="utf-8"))
    phases = {name: set() for _, name in names}
    spelling = dict(names)
    text = (root / PIPELINE).read_text(encoding="utf-8")
    folders = declaring_folders(root)
    steps = list(STEP.finditer(text))
    if not names or not steps:
        raise TableError(f"{PIPELINE}:1: has no steps that scripts/check-architecture-page.py can read; mend the script")
    for step, following in zip(steps, steps[1:] + [None]):
        # A pass that is created in front of its step is counted with the step before it, which is of the same phase.
        body = text[step.start():following.start() if following else len(text)]
        phases[spelling[step["phase"]]] |= {folders[name] for name in CREATE.findall(body) if name in folders}
    return phases


def check_phases(root: pathlib.Path) -> list[str]:
    rows = read_table(root / PAGE, "phases", columns=4)
    phases = phases_of(root)
    if [row.cells[0] for row in rows] != list(phases):
        return [f"{PAGE}:{rows[0].line}: the phases are {', '.join(phases)}, in this order; write a row for each"]
    return [f"{PAGE}:{row.line}: phase '{row.cells[0]}' has passes of {', '.join(sorted(phases[row.cells[0]])) or 'none'}, "
            f"by {PIPELINE}; write these folders"
            for row in rows if set(names_in(row.cells[2])) != phases[row.cells[0]]]


def main(argv) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).parent.parent, help="checkout")
    root = parser.parse_args(argv).root.resolve()
    try:
        errors = check_folders(root) + check_phases(root)
    except (OSError, TableError) as error:
        errors = [str(error)]
    for error in errors:
        print(error, file=sys.stderr)
    print(f"architecture page: {len(errors)} differences")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
