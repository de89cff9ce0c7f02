#!/usr/bin/env python3
"""Checks two rules of style in pages: the word "what" is rare, and no sentence begins with What, Who or Whoever.

Reads README.md, CONTRIBUTING.md, the pages of docs/ and the README.md of each folder. Fenced blocks and code in a line do not
count. A heading counts for the first rule only. Each violation is one line on stderr:
FILE:LINE: the fault; the remedy.

Exit status: 0 when all pages keep both rules, 1 otherwise.
"""

import argparse
import pathlib
import re
import sys

LEFT_OUT = ("build", "demo", ".git")
FENCE = re.compile(r"\s*(```+|~~~+)")
CODE = re.compile(r"(`+).*?\1")
COMMENT = re.compile(r"<!--.*?-->")
TARGET = re.compile(r"\]\([^()\s]*\)")
WHAT = re.compile(r"\bwhat\b", re.IGNORECASE)
# English capitalises these words only where a sentence begins.
FIRST_WORD = re.compile(r"\b(What|Who|Whoever)\b")


def prose(text: str):
    """(number, line) outside of fenced blocks, without code in a line, comments and targets of links."""
    fence = None
    for number, line in enumerate(text.splitlines(), 1):
        mark = FENCE.match(line)
        if mark and (fence is None or mark.group(1).startswith(fence)):
            fence = mark.group(1) if fence is None else None
        elif fence is None:
            yield number, TARGET.sub("]", COMMENT.sub("", CODE.sub("code", line)))


def check_page(name: str, text: str, limit: float) -> list[str]:
    errors, places, words = [], [], 0
    for number, line in prose(text):
        words += len(line.split())
        places += [number] * len(WHAT.findall(line))
        if not line.startswith("#"):
            errors += [f"{name}:{number}: a sentence begins with '{word}'; begin it with the thing that it is about"
                       for word in FIRST_WORD.findall(line)]
    if len(places) * 1000 > limit * words:
        lines = ", ".join(str(number) for number in sorted(set(places)))
        errors.append(f"{name}:{places[0]}: 'what' stands {len(places)} times in {words} words, more than {limit} per 1,000; "
                      f"name the thing instead, in lines {lines}")
    return errors


def pages_of(root: pathlib.Path) -> list[str]:
    names = [page.relative_to(root).as_posix() for page in sorted(root.rglob("*.md"))]
    return [name for name in names
            if not any(name.startswith(folder + "/") for folder in LEFT_OUT)
            and (name.startswith("docs/") or name == "CONTRIBUTING.md" or name.split("/")[-1] == "README.md")]


def main(argv) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).parent.parent, help="checkout")
    parser.add_argument("--limit", type=float, default=1.5, help="occurrences of 'what' per 1,000 words")
    options = parser.parse_args(argv)
    root = options.root.resolve()
    pages = list(pages_of(root))
    errors = [error for name in pages
              for error in check_page(name, (root / name).read_text(encoding="utf-8"), options.limit)]
    for error in errors:
        print(error, file=sys.stderr)
    print(f"prose: {len(pages)} pages, {len(errors)} violations")
    return 1 if errors or not pages else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
