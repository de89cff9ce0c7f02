#!/usr/bin/env python3
"""Checks that what the sources of one library keep to themselves has names of its own.

Release builds compile several sources of a library as one (BOWLINE_UNITE_SOURCES). Of two static functions of one name,
or two in anonymous namespaces, a call would then take the better overload, whosever it is, and no compiler says so.
Reads the declarations of libraries in CMakeLists.txt, and their sources as they are formatted: what a macro writes is not
seen, nor what begins in the middle of a line. Each violation is one line on stderr.

  scripts/check-static-names.py [--root CHECKOUT]

Exit status: 0 when the rule holds, 1 otherwise.
"""

import argparse
import pathlib
import re
import sys

LIBRARY = re.compile(r"bowline_add_(?:compiler|runtime)_library\(\s*(\w+)(.*?)\)", re.DOTALL)
SOURCE = re.compile(r"[\w/]+\.(?:cpp|cc)\b")
ANONYMOUS = re.compile(r"^namespace \{\n(.*?)^\}  ?// namespace\n", re.DOTALL | re.MULTILINE)
# At the beginning of a line: a function, a class, a constant.
FUNCTION = r"(?!namespace\b|using\b|return\b|else\b|template\b)[A-Za-z][^=;{}()\n]*?\b(\w+)\("
CLASS = r"(?:(?:class|struct|union|enum|enum class) (\w+)|using (\w+) =)"
CONSTANT = r"(?:inline )?(?:const|constexpr|constinit) [^=({;\n]*?(\w+)(?:\[[^\]\n]*\])* *[={(]"
STATIC = re.compile(rf"^static (?:{CONSTANT}|{FUNCTION})", re.MULTILINE)
INNER = re.compile(rf"^(?:{CONSTANT}|{CLASS}|{FUNCTION})", re.MULTILINE)
# Kernels are compiled for several instruction sets, each source alone.
ALONE_FOLDERS = ("kernels",)


def own_names(text: str) -> set[str]:
    """Names at namespace scope that other sources cannot see."""
    matches = list(STATIC.finditer(text))
    for body in ANONYMOUS.finditer(text):
        matches += INNER.finditer(body.group(1))
    return {name for match in matches for name in match.groups() if name}


def violations_of(root: pathlib.Path) -> tuple[list[str], int]:
    violations, libraries = [], 0
    for page in sorted(root.rglob("CMakeLists.txt")):
        folder = page.parent.relative_to(root)
        if folder.parts and (folder.parts[0] in ALONE_FOLDERS or folder.parts[0].startswith(("build", "."))):
            continue
        text = page.read_text(encoding="utf-8")
        for name, declaration in LIBRARY.findall(text):
            libraries += 1
            first: dict[str, str] = {}
            for source in SOURCE.findall(declaration):
                path = page.parent / source
                if not path.is_file():
                    continue
                file = path.relative_to(root).as_posix()
                for own in sorted(own_names(path.read_text(encoding="utf-8"))):
                    other = first.setdefault(own, file)
                    if other != file:
                        violations.append(f"{file}: has a '{own}' of its own, and so has {other} of the same library, {name}, "
                                          "which may be compiled as one with it; rename one, or share it by a header")
    return violations, libraries


def main(argv) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).parent.parent, help="checkout")
    violations, libraries = violations_of(parser.parse_args(argv).root.resolve())
    for message in violations:
        print(message, file=sys.stderr)
    print(f"static names: {libraries} libraries: {len(violations)} violations")
    return 1 if violations or not libraries else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
