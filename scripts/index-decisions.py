#!/usr/bin/env python3
"""Writes docs/decisions/README.md, the index of decisions by area, from the files beside it; --check compares instead.

A decision is a file NNNN-short-title.md that begins with

    # NNNN: Title

    - Date: 2026-11-21
    - Area: kernels
    - Status: accepted

Other states name later decisions by links to them: "accepted, amended by [0059](0059-title.md)", "superseded by
[0046](0046-title.md)"; several links are separated by ", ". No two decisions have one number; numbers may be left out, because people who work side
by side take theirs ahead. Each violation is one line on stderr: FILE:LINE: what is wrong; what to do.

Exit status: 0 when all decisions keep this form and, with --check, the index is theirs; 1 otherwise.
"""

import argparse
import datetime
import pathlib
import re
import sys
from typing import NamedTuple

# In the order of the index.
AREAS = {
    "build": "Platform, libraries, who may include whom",
    "frontends": "Readers of models and what they hand over",
    "sharding": "Strategies, shardings, ZeRO",
    "pipelines": "Stages, schedules, transfers between stages",
    "fusion": "Rewrites of the graph that save time or memory, recomputation",
    "precision": "Types, and where values are rounded",
    "code generation": "Generated kernels, targets, the cache of compiled kernels",
    "kernels": "Hand-written kernels and the threads that run them",
    "order and memory": "Order of commands, streams, lifetimes, places in memory",
    "plans": "What a plan holds",
    "proofs": "Certificates, the checker, equivalence",
    "communication": "Ranks that are threads, ranks that are processes, what they exchange",
    "devices": "Memory, streams and launches of devices, drivers and how they are found",
    "training": "Steps, optimizer, checkpoints",
    "text": "Tokenizers and templates",
    "serving": "Serving",
    "command line": "What tools accept, print and return",
}

INTRODUCTION = """\
# Decisions

What was decided, when, and why, and what was rejected. A decision is never rewritten: one that falls gets a new one that
says what showed it to be wrong, and only its status changes. *Amended* means that a later decision changed a part of it
and the rest holds; *superseded* means that nothing of it holds any more.

A new decision takes the next number and begins as the others do; `scripts/index-decisions.py` then writes this page, and
the tests compare it.
"""

HEADER = re.compile(r"# (?P<number>\d{4}): (?P<title>\S.*)\n\n"
                    r"- Date: (?P<date>.*)\n- Area: (?P<area>.*)\n- Status: (?P<status>.*)\n\n(?=\S)")
LINK = r"\[\d{4}\]\([\w.-]+\)"
STATUS = re.compile(rf"accepted|(?:accepted, amended|superseded) by {LINK}(?:, {LINK})*")


class Decision(NamedTuple):
    file: str
    number: str
    title: str
    date: str
    area: str
    status: str


class FormError(Exception):
    """A file that does not keep the form."""


def read_decision(path: pathlib.Path) -> Decision:
    name = re.fullmatch(r"(\d{4})-[a-z0-9-]+\.md", path.name)
    if not name:
        raise FormError(f"{path}:1: is not called NNNN-short-title.md; rename it, with lower-case letters, digits and '-'")
    header = HEADER.match(path.read_text(encoding="utf-8"))
    if not header:
        raise FormError(f"{path}:1: does not begin as a decision does; begin it as scripts/index-decisions.py --help shows")
    decision = Decision(path.name, **header.groupdict())
    if decision.number != name.group(1):
        raise FormError(f"{path}:1: has the number {decision.number} in its title; write the number of its name")
    try:
        datetime.date.fromisoformat(decision.date)
    except ValueError:
        raise FormError(f"{path}:3: the date '{decision.date}' is none; write it as 2026-11-21") from None
    if decision.area not in AREAS:
        raise FormError(f"{path}:4: there is no area '{decision.area}'; write one of: {', '.join(AREAS)}")
    if not STATUS.fullmatch(decision.status):
        raise FormError(f"{path}:5: the status '{decision.status}' is not understood; see scripts/index-decisions.py --help")
    return decision


def read_decisions(folder: pathlib.Path) -> tuple[list[Decision], list[str]]:
    decisions, errors = [], []
    for path in sorted(folder.glob("*.md")):
        if path.name == "README.md":
            continue
        try:
            decisions.append(read_decision(path))
        except FormError as error:
            errors.append(str(error))
    files = {decision.file for decision in decisions}
    by_number = {}
    for decision in decisions:
        where = folder / decision.file
        first = by_number.setdefault(decision.number, decision.file)
        if first != decision.file:
            errors.append(f"{where}:1: has the number {decision.number}, which {first} has too; take one that is free")
        for number, target in re.findall(r"\[(\d{4})\]\(([\w.-]+)\)", decision.status):
            if target not in files or not target.startswith(number):
                errors.append(f"{where}:5: [{number}]({target}) is no decision; write the name of its file")
            elif number <= decision.number:
                errors.append(f"{where}:5: [{number}]({target}) is not later than this decision; the later one decides")
    if not decisions and not errors:
        errors.append(f"{folder}: holds no decision; is it the right folder?")
    return decisions, errors


def index_of(decisions: list[Decision]) -> str:
    text = INTRODUCTION
    for area, description in AREAS.items():
        rows = [decision for decision in decisions if decision.area == area]
        if rows:
            text += f"\n## {area.capitalize()}\n\n{description}.\n\n| | decision | date | status |\n|---|---|---|---|\n"
            text += "".join(f"| [{row.number}]({row.file}) | {row.title} | {row.date} | {row.status} |\n" for row in rows)
    return text


def main(argv) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parent.parent / "docs/decisions", help="with the decisions")
    parser.add_argument("--check", action="store_true", help="compare the index with what would be written")
    arguments = parser.parse_args(argv)

    decisions, errors = read_decisions(arguments.folder)
    page = arguments.folder / "README.md"
    if not errors and arguments.check:
        if not page.exists() or page.read_text(encoding="utf-8") != index_of(decisions):
            errors.append(f"{page}:1: is not the index of these decisions; run scripts/index-decisions.py")
    elif not errors:
        page.write_text(index_of(decisions), encoding="utf-8")
    for error in errors:
        print(error, file=sys.stderr)
    print(f"decisions: {len(decisions)} read, {len(errors)} errors")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
