#!/usr/bin/env python3
"""Checks two rules of style: the word "what" is rare, and no sentence begins with What, Who or Whoever.

Reads README.md, CONTRIBUTING.md, the pages of docs/ and the README.md of each folder; and groups of sources: the .td files,
the headers of dialects/ and checker/, those of folders of runtime/. Of a header it reads comments; of a .td file also
descriptions, and quoted texts of three words or more. Fenced blocks and code in a line do not count. A heading counts for the
first rule only. That rule holds for each page, and for each group of sources as a whole. Each violation is one line on stderr:
FILE:LINE: the fault; the remedy.

Exit status: 0 when all pages and groups keep both rules, 1 otherwise.
"""

import argparse
import pathlib
import re
import sys

LEFT_OUT = ("build", "demo", ".git")
# A suffix, and the folders whose files with that suffix are one group.
SOURCES = ((".td", ("",)),
           (".h", ("dialects/", "checker/")),
           (".h", ("runtime/hal/", "runtime/plan/", "runtime/executor/", "runtime/train/", "runtime/serve/")))
FENCE = re.compile(r"\s*(```+|~~~+)")
CODE = re.compile(r"(`+).*?\1")
COMMENT = re.compile(r"<!--.*?-->")
HEADING = re.compile(r"#+ ")
# A string, a character or a comment, in C++ and TableGen.
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|(?<!\w)\'(?:[^\'\\]|\\.)+\'|//.*')
DESCRIPTION = re.compile(r"(\blet description = |Method<)\[\{$")
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


def documentation(name: str, text: str) -> str:
    """The lines of a header or a .td file, each without all but its comments and texts."""
    lines, inside = [], False
    for line in text.splitlines():
        if inside:
            inside = not line.lstrip().startswith("}]")
            lines.append(line if inside else "")
            continue
        inside = name.endswith(".td") and DESCRIPTION.search(line) is not None
        texts = [token.lstrip("/") for token in TOKEN.findall(line)
                 if token.startswith("//")
                 or (token.startswith('"') and name.endswith(".td") and len(token.split()) > 2)]
        lines.append(" ".join(texts).strip())
    return "\n".join(lines)


def check(texts: dict[str, str], limit: float) -> list[str]:
    """The violations of a page, or of a group of files: texts by name."""
    errors, places, words = [], [], 0
    for name, text in texts.items():
        for number, line in prose(text):
            words += len(line.split())
            places += [f"{name}:{number}"] * len(WHAT.findall(line))
            if not HEADING.match(line):
                errors += [f"{name}:{number}: a sentence begins with '{word}'; begin it with the thing that it is about"
                           for word in FIRST_WORD.findall(line)]
    if len(places) * 1000 > limit * words:
        errors.append(f"{places[0]}: 'what' stands {len(places)} times in {words} words, more than {limit} per 1,000; "
                      f"name the thing instead, in {', '.join(dict.fromkeys(places))}")
    return errors


def files_of(root: pathlib.Path, suffix: str) -> list[str]:
    tops = [top for top in sorted(root.iterdir()) if top.name not in LEFT_OUT]
    files = [file for top in tops for file in (sorted(top.rglob("*" + suffix)) if top.is_dir() else [top])]
    return [file.relative_to(root).as_posix() for file in files if file.suffix == suffix]


def pages_of(root: pathlib.Path) -> list[str]:
    return [name for name in files_of(root, ".md")
            if name.startswith("docs/") or name == "CONTRIBUTING.md" or name.split("/")[-1] == "README.md"]


def main(argv) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).parent.parent, help="checkout")
    parser.add_argument("--limit", type=float, default=1.5, help="occurrences of 'what' per 1,000 words")
    options = parser.parse_args(argv)
    root = options.root.resolve()
    pages = pages_of(root)
    texts = [{name: (root / name).read_text(encoding="utf-8")} for name in pages]
    for suffix, folders in SOURCES:
        names = [name for name in files_of(root, suffix) if name.startswith(folders)]
        texts.append({name: documentation(name, (root / name).read_text(encoding="utf-8")) for name in names})
    errors = [error for group in texts for error in check(group, options.limit)]
    for error in errors:
        print(error, file=sys.stderr)
    print(f"prose: {len(pages)} pages, {sum(map(len, texts)) - len(pages)} sources, {len(errors)} violations")
    return 1 if errors or not pages or not all(texts) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
