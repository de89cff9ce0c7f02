#!/usr/bin/env python3
"""Generates the reference pages into BUILD/docs/reference: dialects, passes, commands, and the plan's schema.

Everything comes from where the code says it: TableGen definitions, --help of the built tools, comments of plan.fbs. The
dialects' pages are made by the build (target bowline-docs); this script makes the others, and an index of all.

Exit status: 0 when every page is made, 1 otherwise.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
from typing import NamedTuple


class Page(NamedTuple):
    name: str  # file without .md
    title: str
    text: str


class PageError(Exception):
    """A page cannot be made."""


def output_of(*command) -> str:
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise PageError(f"'{' '.join(map(str, command))}' ended with {result.returncode}: {result.stderr.strip()}")
    return result.stdout


# --- Passes ---------------------------------------------------------------------------------------------------------


def pass_pages(root: pathlib.Path):
    tablegen = next(filter(None, map(shutil.which, ("mlir-tblgen-22", "mlir-tblgen"))), None)
    if tablegen is None:
        raise PageError("mlir-tblgen-22 is not installed; run scripts/install-packages.sh")
    mlir = pathlib.Path(tablegen).resolve().parents[1] / "include"
    for file in sorted((root / "passes").glob("*/Passes.td")):
        group = file.parent.name
        yield Page(f"passes-{group.lower()}", f"Passes: {group}",
                   output_of(tablegen, "-gen-pass-doc", f"-I{root}", f"-I{mlir}", file))


# --- Commands -------------------------------------------------------------------------------------------------------


def subcommands(help_text: str) -> list[str]:
    """Names in the section that CLI11 titles "Subcommands:"."""
    match = re.search(r"^Subcommands:\n((?:[ \t]+\S.*\n?)+)", help_text, re.MULTILINE)
    # Descriptions that go on in a further line are indented deeper than names.
    return re.findall(r"^  (\S+)", match.group(1), re.MULTILINE) if match else []


def command_page(tools: pathlib.Path) -> Page:
    # Measuring tools are for developers of kernels and belong to no user's path.
    found = [tool for tool in sorted(tools.glob("bowline*")) if tool.is_file() and not tool.name.endswith("-bench")]
    if not found:
        raise PageError(f"{tools} has no tools; build them first ('make build')")
    text = ""
    for tool in found:
        help_text = output_of(tool, "--help")
        # The dispatcher's help lists paths of tools, which differ between machines.
        if tool.name == "bowline":
            help_text = help_text.split("Verbs:")[0]
        text += f"## {tool.name}\n\n```text\n{help_text.strip()}\n```\n\n"
        for subcommand in subcommands(help_text):
            text += f"### {tool.name} {subcommand}\n\n```text\n{output_of(tool, subcommand, '--help').strip()}\n```\n\n"
    return Page("commands", "Commands", text)


# --- Plan schema ----------------------------------------------------------------------------------------------------

DECLARATION = re.compile(r"^(table|struct|enum|union)\s+(\w+)([^{]*)\{(.*)$", re.DOTALL)


def declarations(schema: str):
    """(comment before it, kind, name, base type, body) of each declaration; and the comment at the top of the file."""
    comment, pending, header = [], None, None
    for line in schema.splitlines():
        stripped = line.strip()
        if pending is not None:
            pending += "\n" + line
        elif stripped.startswith("//"):
            comment.append(stripped.lstrip("/").strip())
            continue
        elif re.match(r"(table|struct|enum|union)\b", stripped):
            pending = line
        else:
            if comment and header is None:
                header = "\n".join(comment)
                yield header
            comment = []
        if pending is not None and re.sub(r"//[^\n]*", "", pending).rstrip().endswith("}"):
            kind, name, base, body = DECLARATION.match(pending.strip()).groups()
            yield "\n".join(comment), kind, name, base.strip(" :\n"), body
            comment, pending = [], None
    if pending is not None:
        raise PageError(f"plan.fbs: this declaration is not closed: {pending.splitlines()[0]}")


def fields(body: str, separator: str):
    """(declaration, comment) of each field: comments stand before it or at the end of its line."""
    before = []
    for line in body.splitlines():
        code, _, comment = line.partition("//")
        comment = comment.strip()
        names = [part.strip() for part in re.split(separator, code.strip().rstrip("}")) if part.strip()]
        if not names:
            if comment:
                before.append(comment)
            continue
        for name in names:
            yield name, " ".join([*before, comment] if comment else before)
            before = []


def schema_page(path: pathlib.Path) -> Page:
    text = f"Generated from `runtime/plan/{path.name}`.\n\n"
    for declaration in declarations(path.read_text(encoding="utf-8")):
        if isinstance(declaration, str):
            text += declaration + "\n\n"
            continue
        comment, kind, name, base, body = declaration
        text += f"## {kind} {name}{' : ' + base if base else ''}\n\n"
        text += comment + "\n\n" if comment else ""
        text += f"| {'value' if kind in ('enum', 'union') else 'field'} | meaning |\n|---|---|\n"
        for field, meaning in fields(body, "," if kind in ("enum", "union") else ";"):
            text += f"| `{field}` | {meaning.replace('|', chr(92) + '|')} |\n"
        text += "\n"
    return Page("plan-schema", "The plan file's schema", text)


# --- All ------------------------------------------------------------------------------------------------------------


def title_of(page: pathlib.Path) -> str:
    match = re.search(r"^# (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return match.group(1) if match else page.stem


def main(argv) -> int:
    root = pathlib.Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build-dir", type=pathlib.Path, required=True, help="a build of everything")
    arguments = parser.parse_args(argv)
    out = arguments.build_dir / "docs" / "reference"
    try:
        output_of("cmake", "--build", arguments.build_dir, "--target", "bowline-docs")
        out.mkdir(parents=True, exist_ok=True)
        pages = [*pass_pages(root), command_page(arguments.build_dir / "bin"),
                 schema_page(root / "runtime" / "plan" / "plan.fbs")]
        for page in pages:
            (out / f"{page.name}.md").write_text(f"# {page.title}\n\n{page.text.rstrip()}\n", encoding="utf-8")
        entries = sorted((path.name, title_of(path)) for path in out.glob("*.md") if path.name != "index.md")
        index = "".join(f"- [{title}]({name})\n" for name, title in entries)
        (out / "index.md").write_text(f"# Reference\n\n{index}", encoding="utf-8")
    except (PageError, OSError) as error:
        print(f"make-reference: error: {error}", file=sys.stderr)
        return 1
    print(f"{len(entries) + 1} pages: {out}/index.md")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
