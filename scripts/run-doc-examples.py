#!/usr/bin/env python3
"""Executes the examples of the documentation, so that they cannot rot.

In a page, `<!-- run -->` on the line before a ```sh block says that its commands are executed, all blocks of a page in
one scratch copy of the checkout, one after the other, each in a new `bash -euo pipefail` with the built tools on PATH.
A block must succeed; `<!-- run exit=N -->` says that it ends with the exit code N instead. `<!-- output -->` before a
```text block says what the block before it prints, standard output and error together. There `...` stands for any text
within a line, and a line that is only `...` for any number of lines. Space at the ends of lines does not count. After
`<!-- output numbers=any -->` the page shows one run's numbers: others, and the columns that they shift, match too.
`<!-- file PATH -->` before a block says that the block is that file of the checkout, all of it.

The tools' build folder is build/release in the scratch copy, as it is for who follows the page after `make build`.

Exit status: 0 when every example did as the page says, 1 otherwise.
"""

import argparse
import difflib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from typing import Optional


@dataclass
class Example:
    page: str
    line: int  # of the opening fence, from 1
    commands: str
    exit_code: int = 0
    output: Optional[str] = None  # None: not stated
    output_line: int = 0
    any_numbers: bool = False


@dataclass
class Listing:
    page: str
    line: int
    path: str  # from the root
    text: str


class PageError(Exception):
    """A marker that marks nothing, or nonsense."""


MARKER = re.compile(r"^<!--\s*(run|output|file)\b(.*?)-->\s*$")
RUN_OPTION = re.compile(r"^\s*(?:exit=(\d+))?\s*$")


def extract(page: str, text: str) -> tuple[list[Example], list[Listing]]:
    """The marked examples of a page, in order, and its listings of files."""
    examples, listings = [], []
    lines = text.splitlines()
    index = 0
    while index < len(lines):
        marker = MARKER.match(lines[index])
        if not marker:
            # Markers inside other fenced blocks are text about markers.
            fence = re.match(r"^\s*(```+|~~~+)", lines[index])
            index += 1
            if fence:
                while index < len(lines) and lines[index].strip() != fence.group(1):
                    index += 1
                index += 1
            continue
        where = f"{page}:{index + 1}"
        kind, options = marker.group(1), marker.group(2)
        language = {"run": "sh", "output": "text", "file": r"\w*"}[kind]
        if index + 1 >= len(lines) or not re.fullmatch(f"```{language}", lines[index + 1].rstrip()):
            raise PageError(f"{where}: the line after <!-- {kind} --> must be ```{'' if kind == 'file' else language}")
        begin = index + 2
        end = begin
        while end < len(lines) and lines[end].rstrip() != "```":
            end += 1
        if end == len(lines):
            raise PageError(f"{page}:{begin}: this block is not closed by ```")
        content = "\n".join(lines[begin:end]) + "\n"
        if kind == "run":
            option = RUN_OPTION.match(options)
            if not option:
                raise PageError(f"{where}: '{options.strip()}' is not understood; the only option is exit=N")
            examples.append(Example(page, begin, content, int(option.group(1) or 0)))
        elif kind == "file":
            if not options.strip():
                raise PageError(f"{where}: name the file, as in <!-- file examples/name.cpp -->")
            listings.append(Listing(page, begin, options.strip(), content))
        elif options.strip() not in ("", "numbers=any"):
            raise PageError(f"{where}: '{options.strip()}' is not understood; the only option is numbers=any")
        elif not examples or examples[-1].output is not None:
            raise PageError(f"{where}: there is no <!-- run --> block before this output")
        else:
            examples[-1].output, examples[-1].output_line = content, begin
            examples[-1].any_numbers = bool(options.strip())
        index = end + 1
    return examples, listings


def difference(listing: Listing, root: pathlib.Path) -> Optional[str]:
    """None when the block is its file, else the difference."""
    where = f"{listing.page}:{listing.line}"
    try:
        actual = (root / listing.path).read_text(encoding="utf-8")
    except OSError as error:
        return f"{where}: {error}"
    if actual == listing.text:
        return None
    lines = difflib.unified_diff(listing.text.splitlines(), actual.splitlines(), listing.page, listing.path, lineterm="")
    return f"{where}: the block is not the file {listing.path}:\n" + indented("\n".join(lines))


# Integers and decimal numbers of their own, not digits within a name such as "i32" or "layers_0".
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.]*\w)")


def literal_pattern(text: str, any_numbers: bool) -> str:
    if not any_numbers:
        return re.escape(text)
    parts = []
    for piece in re.split(r"( +)", text):
        if piece.startswith(" "):
            parts.append(" +")
        elif NUMBER.search(piece):
            parts.append(NUMBER.pattern.join(map(re.escape, NUMBER.split(piece))))
        else:
            parts.append(re.escape(piece))
    return "".join(parts)


def output_pattern(expected: str, any_numbers: bool) -> re.Pattern:
    parts = []
    for line in expected.splitlines():
        if line.strip() == "...":
            parts.append(r"(?:[^\n]*\n)*")
        else:
            texts = [literal_pattern(text, any_numbers) for text in line.rstrip().split("...")]
            parts.append(r"[^\n]*".join(texts) + "\n")
    return re.compile("".join(parts))


def matches(expected: str, actual: str, any_numbers: bool) -> bool:
    actual = "".join(line.rstrip() + "\n" for line in actual.splitlines())
    return output_pattern(expected, any_numbers).fullmatch(actual) is not None


def indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines()) or "    (nothing)\n"


def run(example: Example, folder: pathlib.Path, environment: dict, timeout: float) -> Optional[str]:
    """None when the example did as its page says, else the failure."""
    where = f"{example.page}:{example.line}"
    # A session of its own, so that a timeout ends everything that the commands started.
    process = subprocess.Popen(["bash", "-euo", "pipefail", "-c", example.commands], cwd=folder, env=environment,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, errors="replace", start_new_session=True)
    try:
        output, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        return f"{where}: still running after {timeout:g} s:\n{indented(example.commands)}  printed:\n{indented(output)}"
    if process.returncode != example.exit_code:
        return (f"{where}: exit code {process.returncode}, the page says {example.exit_code}:\n"
                f"{indented(example.commands)}  printed:\n{indented(output)}")
    if example.output is not None and not matches(example.output, output, example.any_numbers):
        return (f"{example.page}:{example.output_line}: the output differs. The page says:\n{indented(example.output)}"
                f"  printed:\n{indented(output)}")
    return None


def main(argv) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).parent.parent, help="checkout")
    parser.add_argument("--tools", type=pathlib.Path, required=True, help="folder with the built tools")
    parser.add_argument("--timeout", type=float, default=600, help="seconds for one block")
    parser.add_argument("pages", nargs="*", help="pages from the root; default: README.md, docs/*.md, examples/*/README.md")
    arguments = parser.parse_args(argv)
    root = arguments.root.resolve()
    pages = arguments.pages or ["README.md"] + sorted(
        str(path.relative_to(root)) for pattern in ("docs/*.md", "examples/*/README.md") for path in root.glob(pattern))

    # Examples leave nothing in the cache of whoever runs them.
    environment = dict({"BOWLINE_CACHE_DIR": "off", **os.environ}, PATH=f"{arguments.tools.resolve()}{os.pathsep}{os.environ['PATH']}", LC_ALL="C.UTF-8")
    passed, failures = 0, []
    for page in pages:
        try:
            examples, listings = extract(page, (root / page).read_text(encoding="utf-8"))
        except (PageError, OSError) as error:
            failures.append(str(error))
            continue
        differences = [difference(listing, root) for listing in listings]
        failures += filter(None, differences)
        passed += differences.count(None)
        if not examples:
            continue
        with tempfile.TemporaryDirectory(prefix="bowline-doc-examples-") as scratch:
            copy = pathlib.Path(scratch) / "bowline"
            shutil.copytree(root, copy, symlinks=True,
                            ignore=lambda folder, _: {".git", "build", "demo"} if pathlib.Path(folder) == root
                            else {"__pycache__"})
            (copy / "build").mkdir()
            (copy / "build/release").symlink_to(arguments.tools.resolve().parent)
            for example in examples:
                failure = run(example, copy, environment, arguments.timeout)
                if failure:
                    failures.append(failure)
                    # Later blocks of the page build on this one.
                    break
                passed += 1

    for failure in failures:
        print(failure, file=sys.stderr)
    print(f"doc examples: {passed} as documented, {len(failures)} not")
    if passed + len(failures) == 0:
        print("no page marks an example with <!-- run --> or <!-- file -->; is the marker misspelt?", file=sys.stderr)
        return 1
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
