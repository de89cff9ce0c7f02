#!/usr/bin/env python3
"""Checks that docs/architecture.md lists the folders that there are, and for each phase the one that its passes lie in.

The table `<!-- folders -->` has a row for each folder of the first two levels that holds files, `test` and `types`
excepted, which have one row each. The table `<!-- phases -->` has the phases of dialects/Program/Phase.cpp in order; in its third column is the
folder that Phase.cpp says, of which no two phases have the same. The passes of the phase's steps in
compiler/Pipelines/Pipeline.cpp lie in this folder, declared in its Passes.td or in a header; passes of MLIR have none.
A pass that is declared with a phase, as PhasePass, stands in the folder of that phase. Each violation is one line on
stderr: FILE:LINE: what; what to do.

Exit status: 0 when page and tree agree, 1 otherwise.
"""

import argparse
import pathlib
import re
import sys
from typing import NamedTuple

from markdown_tables import TableError, read_table

PAGE = "docs/architecture.md"
TOP_FOLDERS = ("checker", "compiler", "dialects", "frontends", "kernels", "passes", "runtime", "targets")
PIPELINE = "compiler/Pipelines/Pipeline.cpp"
PHASES = "dialects/Program/Phase.cpp"


def folders_of(root: pathlib.Path) -> set[str]:
    """The folders that the page lists: those with a file somewhere below them."""
    found = {"test"} | {"checker", "types"} & {path.name for path in root.iterdir()}
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
        for name in re.findall(r"^def (\w+) : (?:Phase)?Pass<", path.read_text(encoding="utf-8"), re.MULTILINE):
            folders[name] = path.parent.relative_to(root).as_posix()
    for path in sorted((root / "compiler").glob("*/*.h")):
        # Passes of compiler/Pipelines run others.
        if path.parent.name != "Pipelines":
            for name in re.findall(r"> create(\w+)\(", path.read_text(encoding="utf-8")):
                folders[name] = path.parent.relative_to(root).as_posix()
    return folders


class PhaseRow(NamedTuple):
    spelling: str  # of the enumerator
    name: str
    folder: str


def phases_of(root: pathlib.Path) -> list[PhaseRow]:
    rows = [PhaseRow(*row) for row in re.findall(r'\{Phase::(\w+), "(\w+)", "([\w/]+)"', (root / PHASES).read_text(encoding="utf-8"))]
    if not rows:
        raise TableError(f"{PHASES}:1: has no phases that scripts/check-architecture-page.py can read; mend the script")
    return rows


def folders_of_steps(root: pathlib.Path) -> dict[str, set[str]]:
    """The folders of the passes of each phase, by the spelling of the phase."""
    text = (root / PIPELINE).read_text(encoding="utf-8")
    folders = declaring_folders(root)
    steps = list(STEP.finditer(text))
    if not steps:
        raise TableError(f"{PIPELINE}:1: has no steps that scripts/check-architecture-page.py can read; mend the script")
    found = {}
    for step, following in zip(steps, steps[1:] + [None]):
        # A pass that is created in front of its step is counted with the step before it, which is of the same phase.
        body = text[step.start():following.start() if following else len(text)]
        found.setdefault(step["phase"], set()).update(folders[name] for name in CREATE.findall(body) if name in folders)
    return found


def check_declarations(root: pathlib.Path, phases: list[PhaseRow]) -> list[str]:
    """A pass that a Passes.td declares for a phase must lie in the folder of that phase."""
    folder_of = {phase.spelling: phase.folder for phase in phases}
    errors = []
    for path in sorted((root / "passes").glob("*/Passes.td")):
        folder = path.parent.relative_to(root).as_posix()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            declared = re.match(r'def (\w+) : PhasePass<"[\w-]+", "(\w+)">', line)
            if declared and folder_of.get(declared[2]) != folder:
                errors.append(f"{folder}/Passes.td:{number}: {declared[1]} is a pass of phase {declared[2]}, whose folder is "
                              f"{folder_of.get(declared[2], 'none')}; move it there, or name the phase of this folder")
    return errors


def check_phases(root: pathlib.Path) -> list[str]:
    rows = read_table(root / PAGE, "phases", columns=4)
    phases = phases_of(root)
    if [row.cells[0] for row in rows] != [phase.name for phase in phases]:
        return [f"{PAGE}:{rows[0].line}: the phases are {', '.join(phase.name for phase in phases)}, in this order; write a "
                "row for each"]
    steps, owner, errors = folders_of_steps(root), {}, check_declarations(root, phases)
    for row, phase in zip(rows, phases):
        if row.cells[2] != phase.folder:
            errors.append(f"{PAGE}:{row.line}: phase '{phase.name}' belongs to {phase.folder}, by {PHASES}; write this folder")
        if phase.folder in owner:
            errors.append(f"{PHASES}:1: phases '{owner[phase.folder]}' and '{phase.name}' have the same folder "
                          f"{phase.folder}; give each its own")
        owner[phase.folder] = phase.name
        errors += [f"{PIPELINE}:1: a step of phase '{phase.name}' is a pass of {folder}, but the phase belongs to "
                   f"{phase.folder}; move the pass, or the step"
                   for folder in sorted(steps.get(phase.spelling, set()) - {phase.folder})]
    return errors


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
