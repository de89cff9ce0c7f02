#!/usr/bin/env python3
"""Checks that no two files define classes of one name in one namespace.

Linkers take members of such classes for each other: a program then calls one's destructor for both. A class in an
anonymous namespace belongs to its file and may have any name. Reads sources and headers, not what they expand to:
classes that TableGen or a macro writes are not seen. Structs, unions and templates are classes here; a specialisation is
told apart by its arguments. Each violation is one line on stderr: FILE:LINE: what: the rule; what to do.

Exit status: 0 when the rule holds, 1 otherwise.
"""

import argparse
import pathlib
import re
import sys
from typing import NamedTuple, Optional

TOP_FOLDERS = ("checker", "compiler", "dialects", "examples", "frontends", "kernels", "passes", "runtime", "targets", "test",
               "types")
SOURCE_SUFFIXES = {".h", ".cc", ".cpp", ".inc"}

RULE = "all files may be linked into one program, which then takes one class for the other"
REMEDY = "rename one, or put it into an anonymous namespace where one file alone uses it"

# Text other than code, in the order in which the patterns are tried. A literal becomes one token, so its content is not read.
NO_CODE = re.compile(
    r"(?P<comment>//(?:[^\n\\]|\\.|\\\n)*|/\*.*?\*/)"
    r'|(?P<literal>(?:\b(?:u8|[uUL]))?(?:\bR|R)"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"'
    r'|"(?:[^"\\\n]|\\.)*"|(?<![0-9A-Fa-f])\'(?:[^\'\\\n]|\\.)+\')'
    r"|(?P<directive>^[ \t]*#(?:[^\n\\]|\\.|\\\n)*)", re.DOTALL | re.MULTILINE)
TOKEN = re.compile(r"\w+|::|\[\[|\]\]|\S")
CLASS_KEYS = ("class", "struct", "union")
CLOSING = {"(": ")", "[": "]", "[[": "]]", "<": ">", "{": "}"}


class Token(NamedTuple):
    text: str
    line: int


class Definition(NamedTuple):
    name: str  # with its namespaces
    line: int


def tokens_of(text: str) -> list[Token]:
    def blank(match):
        return ('""' if match.group("literal") else " ") + "\n" * match.group(0).count("\n")

    return [Token(match.group(0), number) for number, line in enumerate(NO_CODE.sub(blank, text).split("\n"), 1)
            for match in TOKEN.finditer(line)]


class Scanner:
    """Walks through a file's namespaces, and skips the content of other braces."""

    def __init__(self, text: str):
        self.tokens = tokens_of(text)
        self.at = 0
        self.namespaces: list[Optional[str]] = []  # the open ones; None: anonymous
        self.found: list[Definition] = []

    def text(self) -> str:
        return self.tokens[self.at].text if self.at < len(self.tokens) else ""

    def skip_balanced(self):
        """Moves behind the bracket that closes the one here; inside, only brackets of the same kind count."""
        opening, depth = self.text(), 0
        while self.text():
            depth += (self.text() == opening) - (self.text() == CLOSING[opening])
            self.at += 1
            if depth == 0:
                return

    def run(self) -> list[Definition]:
        while self.text():
            if self.text() == "namespace":
                self.enter_namespace()
            elif self.text() == "template":
                self.at += 1
                if self.text() == "<":
                    self.skip_balanced()
            elif self.text() in CLASS_KEYS:
                self.read_class()
            elif self.text() == "enum":
                self.at += 2 if self.next_is(CLASS_KEYS) else 1
            elif self.text() == "extern" and [token.text for token in self.tokens[self.at + 1:self.at + 4]] == ['"', '"', "{"]:
                self.at += 4
                self.namespaces.append("")
            elif self.text() == "}":
                if self.namespaces:
                    self.namespaces.pop()
                self.at += 1
            elif self.text() in ("{", "("):
                self.skip_balanced()
            else:
                self.at += 1
        return self.found

    def next_is(self, words) -> bool:
        return self.at + 1 < len(self.tokens) and self.tokens[self.at + 1].text in words

    def enter_namespace(self):
        self.at += 1
        name = ""
        while self.text() not in ("{", ";", "=", ""):
            if self.text() == "[[":
                self.skip_balanced()
                continue
            if self.text() != "inline":
                name += self.text()
            self.at += 1
        if self.text() == "{":
            self.namespaces.append(name or None)
        self.at += 1

    def read_class(self):
        """From the key to behind the class; a declaration and a function that returns a class are none."""
        line = self.tokens[self.at].line
        self.at += 1
        name = ""
        while self.text() not in ("{", ":", ""):
            if self.text() == "[[":
                self.skip_balanced()
            elif self.text() == "alignas":
                self.at += 1
                self.skip_balanced()
            elif self.text() == "<":
                begin = self.at
                self.skip_balanced()
                name += "".join(token.text for token in self.tokens[begin:self.at])
            elif re.fullmatch(r"\w+", self.text()) and not self.text()[0].isdigit():
                # A word behind a word: the first one is a macro for attributes.
                if self.text() != "final":
                    name = name + self.text() if name.endswith("::") else self.text()
                self.at += 1
            elif self.text() == "::":
                name += "::"
                self.at += 1
            else:
                return
        while self.text() not in ("{", ";", ""):  # its bases
            if self.text() == "(":
                self.skip_balanced()
            else:
                self.at += 1
        if self.text() != "{":
            return
        if name and None not in self.namespaces:
            self.found.append(Definition("::".join([*filter(None, self.namespaces), name]), line))
        self.skip_balanced()


def definitions_of(text: str) -> list[Definition]:
    return Scanner(text).run()


def violations_of(root: pathlib.Path) -> tuple[list[str], int]:
    """Violations, and how many classes there are."""
    first: dict[str, tuple[str, int]] = {}
    violations = []
    for folder in TOP_FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in SOURCE_SUFFIXES or not path.is_file():
                continue
            file = path.relative_to(root).as_posix()
            for name, line in definitions_of(path.read_text(encoding="utf-8", errors="replace")):
                other, other_line = first.setdefault(name, (file, line))
                # Of two in one file the preprocessor takes one.
                if other != file:
                    violations.append(f"{file}:{line}: defines '{name}', which {other}:{other_line} defines too: {RULE}; "
                                      f"{REMEDY}")
    return violations, len(first)


def main(argv) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).parent.parent, help="checkout")
    arguments = parser.parse_args(argv)
    violations, classes = violations_of(arguments.root.resolve())
    for message in violations:
        print(message, file=sys.stderr)
    print(f"one definition: {classes} classes: {len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
