#!/usr/bin/env python3
"""Counts where passes and the compiler ask an operation of the graph which one it is, and holds the number down.

Each such place has to be found and extended when an operation is added, so what it asks belongs into an interface of the
operation (dialects/Graph/GraphOpInterfaces.td). A place is a cast, a case or a search with a computing operation of
dialects/Graph/*.td among its template arguments, or a function without a name that takes one, as typed walks and cases
have; functions, variables, fusions and other structure are known to everybody. Operations of other dialects may have the
same names: those are written with their dialect, as in dist::SliceOp.

compiler/Placement is left out: it is a second opinion of what operations are, and may not ask what passes ask.

--list prints the places. With --reasons each needs one: a comment that begins with "By name:" on its line or right above its
statement. Each violation is one line on stderr: FILE:LINE: what; what to do.

Exit status: 0 when there are at most --limit places, with reasons where these are asked for; 1 otherwise.
"""

import argparse
import collections
import pathlib
import re
import sys
from typing import NamedTuple

FOLDERS = ("passes", "compiler")
LEFT_OUT = "compiler/Placement"
# Operations that hold or name others, or stand for memory: passes on programs cannot do without them.
STRUCTURE = {"FuncOp", "ReturnOp", "EntryOp", "ParamOp", "StateOp", "ReadOp", "WriteOp", "FusionOp", "YieldOp"}
QUESTION = re.compile(r"\b(?:isa|cast|dyn_cast|isa_and_nonnull|isa_and_present|dyn_cast_or_null|dyn_cast_if_present|"
                      r"Case|getDefiningOp|getOps)<([^>]*)>")
# `[&](graph::ReduceOp op`: the caller selected the operation by its type. Does not match a function of an algorithm over
# a list of operations: such a list has one type, and comes from a place that is counted.
TYPED = re.compile(r"\b(?:walk|Case)(?:<[^<>]*>)?\(\s*\[[^\[\]]*\]\s*\(\s*((?:const )?[\w:]+)[ &)]")
# Less than that, and the definitions are no longer where this script looks for them.
FEWEST_OPERATIONS = 15


class Place(NamedTuple):
    file: str
    line: int
    text: str
    has_reason: bool


def computing_operations(root: pathlib.Path) -> set[str]:
    text = "".join(path.read_text(encoding="utf-8") for path in sorted((root / "dialects/Graph").glob("*.td")))
    return set(re.findall(r"\bdef Graph_(\w+Op)\b", text)) - STRUCTURE


def has_reason(lines: list[str], index: int) -> bool:
    """Whether the line says why, or the comment above the statement that it is part of."""
    if "By name:" in lines[index]:
        return True
    # The statement begins behind the last line that ends one.
    while index > 0 and not re.search(r"([;{}:]|//.*)\s*$", lines[index - 1]):
        index -= 1
    while index > 0 and lines[index - 1].lstrip().startswith("//"):
        index -= 1
        if re.match(r"\s*///? By name:", lines[index]):
            return True
    return False


def places_of(root: pathlib.Path, operations: set[str]) -> list[Place]:
    name = re.compile(r"(?<![\w:])(?:(?:::)?(?:bowline::)?graph::)?(?:" + "|".join(sorted(operations)) + r")\b")
    places = []
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in (".cpp", ".h") or root / LEFT_OUT in path.parents:
                continue
            text = path.read_text(encoding="utf-8")
            lines = text.split("\n")
            questions = [match for pattern in (QUESTION, TYPED) for match in pattern.finditer(text)]
            for match in sorted(questions, key=lambda match: match.start()):
                if name.search(match.group(1)):
                    index = text.count("\n", 0, match.start())
                    places.append(Place(path.relative_to(root).as_posix(), index + 1,
                                        re.sub(r"\s+", " ", match.group(0)).strip(), has_reason(lines, index)))
    return places


def main(argv) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).parent.parent, help="checkout")
    parser.add_argument("--limit", type=int, required=True, help="most places that there may be")
    parser.add_argument("--reasons", action="store_true", help="each place must say why it is one")
    parser.add_argument("--list", action="store_true", help="print all places")
    arguments = parser.parse_args(argv)
    root = arguments.root.resolve()

    operations = computing_operations(root)
    if len(operations) < FEWEST_OPERATIONS:
        print(f"check-dispatch-sites: error: only {len(operations)} operations are defined in dialects/Graph/*.td; mend the "
              "pattern in this script", file=sys.stderr)
        return 1
    places = places_of(root, operations)
    if arguments.list:
        for place in places:
            print(f"{place.file}:{place.line}: {place.text}")

    errors = []
    if len(places) > arguments.limit:
        most = collections.Counter(place.file for place in places).most_common(5)
        errors.append(f"{len(places)} places ask operations of the graph for their names, and {arguments.limit} may; most: "
                      + ", ".join(f"{file} {count}" for file, count in most) + "; make what they ask a method of an "
                      "interface in dialects/Graph/GraphOpInterfaces.td (--list prints all)")
    if arguments.reasons:
        errors += [f"{place.file}:{place.line}: '{place.text}' asks for an operation's name without a reason; ask an "
                   "interface, or write a comment 'By name: REASON' above the statement"
                   for place in places if not place.has_reason]
    for error in errors:
        print(error, file=sys.stderr)
    print(f"dispatch sites: {len(places)} in {len({place.file for place in places})} files, of {len(operations)} operations; "
          f"at most {arguments.limit}")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
