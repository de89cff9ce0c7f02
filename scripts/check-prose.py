#!/usr/bin/env python3
"""Checks two rules of style: the word "what" is rare, and no sentence begins with What, Who or Whoever.

Reads README.md, CONTRIBUTING.md, the pages of docs/ and the README.md of each folder; and groups of sources: the .td files,
the headers but those of test/, and the messages and help texts of C++ sources. Of a header it reads comments; of a .td file
also descriptions, and quoted texts of three words or more; of C++ sources as messages only such texts. Adjacent literals are one text. A raw string counts where it begins with a capital letter, since others are regular
expressions and programs. No quoted text may begin with "what" or "who" in lower case either.

Fenced blocks and code in a line do not count. A heading counts for the first rule only. That rule holds for each page, and for
each group of sources as a whole. Each violation is one line on stderr: FILE:LINE: the fault; the remedy. Stdout has the rate
of "what" of all pages and of each group, and then the numbers of files and violations.

Exit status: 0 when all pages and groups keep both rules, 1 otherwise.
"""

import argparse
import pathlib
import re
import sys

LEFT_OUT = ("build", "demo", ".git")
# Groups of sources: a name, suffixes, folders, and the kinds of texts that are read.
CPP = (".h", ".cc", ".cpp")
MESSAGES = ("quoted", "raw")
SOURCES = ((".td files", (".td",), ("",), ("comment", "description", "quoted")),
           ("headers of the compiler", (".h",), ("compiler/", "frontends/", "targets/"), ("comment",)),
           ("headers of passes", (".h",), ("passes/",), ("comment",)),
           ("headers of dialects and types", (".h",), ("dialects/", "types/", "checker/"), ("comment",)),
           ("headers of kernels", (".h",), ("kernels/",), ("comment",)),
           ("headers of the runtime", (".h",), ("runtime/",), ("comment",)),
           ("messages of the runtime", CPP, ("runtime/",), MESSAGES),
           ("messages of the compiler", CPP, ("compiler/", "frontends/"), MESSAGES),
           ("messages of passes", CPP, ("passes/",), MESSAGES),
           ("messages of dialects", CPP, ("dialects/",), MESSAGES),
           ("messages of the checker", CPP, ("checker/",), MESSAGES),
           ("messages of kernels", CPP, ("kernels/", "targets/"), MESSAGES))
FENCE = re.compile(r"\s*(```+|~~~+)")
CODE = re.compile(r"(`+).*?\1")
COMMENT = re.compile(r"<!--.*?-->")
HEADING = re.compile(r"#+ ")
LITERAL = r'"(?:[^"\\\n]|\\.)*"'
# A raw string, a description of TableGen, a comment, adjacent literals, or a character. A description ends in the line where it
# begins, or where a line begins with its end.
TOKEN = re.compile(r'(?<!\w)R"(?P<mark>\w*)\((?P<raw>.*?)\)(?P=mark)"'
                   r"|(?:\blet description = |Method<)\[\{(?P<description>[^\n]+?(?=\}\])|\n.*?(?=^[ ]*\}\]))"
                   r"|(?P<comment>//[^\n]*|/\*.*?\*/)"
                   rf"|(?P<quoted>{LITERAL}(?:\s*{LITERAL})*)"
                   r"|(?<!\w)'(?:[^'\\\n]|\\.)+'", re.DOTALL | re.MULTILINE)
TARGET = re.compile(r"\]\([^()\s]*\)")
WHAT = re.compile(r"\bwhat\b", re.IGNORECASE)
# English capitalises these words only where a sentence begins.
FIRST_WORD = re.compile(r"\b(What|Who|Whoever)\b")
# Stands before a quoted text that continues no other.
BEGIN = "\x02"
FIRST_OF_TEXT = re.compile(BEGIN + r"(what|who|whoever)\b")


def prose(text: str):
    """(number, line) outside of fenced blocks, without code in a line, comments and targets of links."""
    fence = None
    for number, line in enumerate(text.splitlines(), 1):
        mark = FENCE.match(line)
        if mark and (fence is None or mark.group(1).startswith(fence)):
            fence = mark.group(1) if fence is None else None
        elif fence is None:
            yield number, TARGET.sub("]", COMMENT.sub("", CODE.sub("code", line)))


def texts_of(text: str, kinds: tuple[str, ...]) -> str:
    """The lines of a source, each without all but its texts of these kinds; a quoted text has a mark where it begins."""
    lines = [""] * (text.count("\n") + 1)
    for token in TOKEN.finditer(text):
        kind = token.lastgroup
        words = token.group(kind) if kind in kinds else ""
        if kind == "comment":
            words = re.sub(r"^[ ]*(?:///?<?|/?\*+/?)|\*/$", " ", words, flags=re.MULTILINE)
        elif kind == "quoted":
            words = re.sub(r"\\.", " ", words).replace('"', "")
            words = words if words.startswith(" ") else BEGIN + words
        if (kind == "quoted" and len(words.split()) < 3) or (kind == "raw" and not words[:1].isupper()):
            continue
        first = text.count("\n", 0, token.start(kind) if kind else 0)
        for number, line in enumerate(words.split("\n"), first):
            lines[number] = f"{lines[number]} {line}".strip()
    return "\n".join(lines)


def check(title: str, texts: dict[str, str], limit: float) -> tuple[list[str], int, int]:
    """Of a page, or of a group of files with texts by name: the violations, the times of 'what', and the words."""
    errors, places, words = [], [], 0
    for name, text in texts.items():
        for number, line in prose(text):
            words += len(line.split())
            places += [f"{name}:{number}"] * len(WHAT.findall(line))
            if not HEADING.match(line):
                errors += [f"{name}:{number}: a sentence begins with '{word}'; begin it with the thing that it is about"
                           for word in FIRST_WORD.findall(line) + FIRST_OF_TEXT.findall(line)]
    if len(places) * 1000 > limit * words:
        errors.append(f"{places[0]}: 'what' stands {len(places)} times in {words} words of {title}, more than {limit} per "
                      f"1,000; name the thing instead, in {', '.join(dict.fromkeys(places))}")
    return errors, len(places), words


def files_of(root: pathlib.Path, suffixes: tuple[str, ...]) -> list[str]:
    tops = [top for top in sorted(root.iterdir()) if top.name not in LEFT_OUT]
    files = [file for top in tops for file in (sorted(top.rglob("*")) if top.is_dir() else [top])]
    return [file.relative_to(root).as_posix() for file in files if file.suffix in suffixes]


def pages_of(root: pathlib.Path) -> list[str]:
    return [name for name in files_of(root, (".md",))
            if name.startswith("docs/") or name == "CONTRIBUTING.md" or name.split("/")[-1] == "README.md"]


def main(argv) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).parent.parent, help="checkout")
    parser.add_argument("--limit", type=float, default=1.5, help="occurrences of 'what' per 1,000 words")
    options = parser.parse_args(argv)
    root = options.root.resolve()
    errors, files, empty = [], set(), False

    def report(title: str, parts: list[tuple[str, dict[str, str]]]):
        checked = [check(name, texts, options.limit) for name, texts in parts]
        whats, words = (sum(part[i] for part in checked) for i in (1, 2))
        errors.extend(error for part in checked for error in part[0])
        print(f"prose: {title}: 'what' stands {whats} times in {words} words, {1000 * whats / max(words, 1):.2f} per 1,000")

    pages = pages_of(root)
    report("pages", [(name, {name: (root / name).read_text(encoding="utf-8")}) for name in pages])
    for title, suffixes, folders, kinds in SOURCES:
        names = [name for name in files_of(root, suffixes) if name.startswith(folders)]
        report(title, [(title, {name: texts_of((root / name).read_text(encoding="utf-8"), kinds) for name in names})])
        files.update(names)
        empty = empty or not names
    for error in errors:
        print(error, file=sys.stderr)
    print(f"prose: {len(pages)} pages, {len(files)} sources, {len(errors)} violations")
    return 1 if errors or not pages or empty else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
