#!/usr/bin/env python3
"""Checks that links in pages lead somewhere: files, folders, and headings of pages.

Reads every page but those of build/ and demo/. Links to other hosts are not followed. A link may not leave the repository.
Each violation is one line on stderr: FILE:LINE: what; what to do.

Exit status: 0 when all links lead somewhere, 1 otherwise.
"""

import argparse
import pathlib
import re
import sys
import urllib.parse

LINK = re.compile(r"(?<!!)\[(?:[^\[\]]|\[[^\[\]]*\])*\]\(([^()\s]*)\)")
HEADING = re.compile(r"^#+ +(.*?) *#*$")


def text_lines(page: pathlib.Path):
    """(number, line) outside of fenced blocks, without code in a line."""
    fence = None
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        mark = re.match(r"\s*(```+|~~~+)", line)
        if mark and (fence is None or mark.group(1).startswith(fence)):
            fence = mark.group(1) if fence is None else None
        elif fence is None:
            yield number, line


def anchors_of(page: pathlib.Path) -> set[str]:
    """As GitHub makes them: lower case, spaces become '-', other marks go; the second of a name gets '-1'."""
    anchors = set()
    for _, line in text_lines(page):
        heading = HEADING.match(line)
        if heading:
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.group(1)).replace("`", "")
            anchor = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            again = 0
            while (name := anchor + (f"-{again}" if again else "")) in anchors:
                again += 1
            anchors.add(name)
    return anchors


def check_page(root: pathlib.Path, page: pathlib.Path) -> list[str]:
    errors = []
    for number, line in text_lines(page):
        for target in LINK.findall(re.sub(r"(`+).*?\1", lambda code: "`" * len(code.group(0)), line)):
            if re.match(r"[a-z]+:", target):
                continue
            where = f"{page.relative_to(root)}:{number}"
            path, _, anchor = urllib.parse.unquote(target).partition("#")
            file = (page.parent / path).resolve() if path else page
            if not file.exists() or not file.is_relative_to(root):
                errors.append(f"{where}: links to '{target}', which is not there; mend the path")
            elif anchor and file.suffix == ".md" and anchor not in anchors_of(file):
                errors.append(f"{where}: links to '{target}', and {file.relative_to(root)} has no such heading; mend the name")
    return errors


def main(argv) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).parent.parent, help="checkout")
    root = parser.parse_args(argv).root.resolve()
    pages = [page for page in sorted(root.rglob("*.md"))
             if page.relative_to(root).parts[0] not in ("build", "demo", ".git")]
    errors = [error for page in pages for error in check_page(root, page)]
    for error in errors:
        print(error, file=sys.stderr)
    print(f"links: {len(pages)} pages, {len(errors)} links that lead nowhere")
    return 1 if errors or not pages else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
