#!/usr/bin/env python3
"""Runs clang-tidy on the lines of C++ sources that changed since a commit, for a limited time; see `make tidy`.

Changed are the lines that differ from the last commit that BASE and HEAD have in common, committed or not; with
--last-commit, from the first parent of HEAD, which a shallow clone fetches. All lines of a first commit are new. A changed
header is seen through one source that includes it. Findings elsewhere are not shown. Files that the time did not suffice
for are named, and headers that no source of the build includes.

Exit status: 0 when what was looked at has no finding, 1 when it has, or when something cannot run, and 77 when --last-commit
cannot know what changed.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Optional

SUFFIXES = (".h", ".cc", ".cpp")
# Exit code of test programs that were skipped, by a convention of automake.
SKIPPED = 77
FETCH_SECONDS = 60


class TidyError(Exception):
    """Nothing can be said; the message is for the user."""


class UnknownParent(TidyError):
    """The clone is too shallow to tell the changed lines."""


def git(root: pathlib.Path, *arguments: str) -> str:
    result = subprocess.run(["git", "-C", root, *arguments], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise TidyError(f"git {' '.join(arguments)}: {result.stderr.strip()}")
    return result.stdout


def first_parent(root: pathlib.Path) -> str:
    """The commit before HEAD on its branch, or the empty tree before a first commit."""
    # A shallow clone hides parents that it has not; the commit itself still names them.
    header = git(root, "cat-file", "commit", "HEAD").partition("\n\n")[0]
    match = re.search(r"^parent (\S+)$", header, re.MULTILINE)
    if match is None:
        return git(root, "hash-object", "-t", "tree", os.devnull).strip()
    parent = match.group(1)

    def is_here():
        return subprocess.run(["git", "-C", root, "cat-file", "-e", f"{parent}^{{commit}}"], capture_output=True,
                              check=False).returncode == 0

    if not is_here():
        try:
            subprocess.run(["git", "-C", root, "fetch", "--quiet", "--no-tags", "--deepen=1"], capture_output=True,
                           check=False, timeout=FETCH_SECONDS, env={**os.environ, "GIT_TERMINAL_PROMPT": "0"})
        except subprocess.TimeoutExpired:
            pass
        if not is_here():
            raise UnknownParent(f"this clone has not commit {parent}, the one before HEAD, and cannot fetch it; clone with "
                                "--depth 2 or more")
    return parent


def changed_lines(root: pathlib.Path, start: str) -> dict[str, list[list[int]]]:
    """First and last line of each run of changed lines, by file; files that git does not know yet are new as a whole."""
    changes, file = {}, None
    for line in git(root, "diff", "--unified=0", "--no-color", "--no-ext-diff", "--no-prefix", start).splitlines():
        if line.startswith("+++ "):
            file = line[4:].split("\t")[0].strip('"')
        elif match := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
            first, count = int(match.group(1)), int(match.group(2) or 1)
            if count and file.endswith(SUFFIXES):
                changes.setdefault(file, []).append([first, first + count - 1])
    for file in git(root, "ls-files", "--others", "--exclude-standard", "-z").split("\0"):
        if file.endswith(SUFFIXES):
            changes[file] = [[1, (root / file).read_bytes().count(b"\n") + 1]]
    return changes


UNITED_SOURCE = re.compile(r'^#include "(/.*)"$', re.MULTILINE)


def commands_of_sources(command: dict) -> list[dict]:
    """The command alone, or of one that compiles several sources as one, which CMake wrote, a command for each of them."""
    if pathlib.Path(command["file"]).parent.name != "Unity":
        return [command]
    text = pathlib.Path(command["directory"], command["file"]).read_text(encoding="utf-8")
    return [{"directory": command["directory"], "file": source,
             "command": command["command"].replace(command["file"], source)} for source in UNITED_SOURCE.findall(text)]


class Build:
    """The compile commands of a build folder. Writes one database for each source into the folder `tidy` there."""

    def __init__(self, root: pathlib.Path, folder: pathlib.Path):
        self.root, self.folder, self.database = root, folder, folder / "tidy"
        commands = folder / "compile_commands.json"
        if not commands.exists():
            raise TidyError(f"{commands} is missing; configure and build first: make build")
        self.sources, alone = set(), []
        for command in json.loads(commands.read_text(encoding="utf-8")):
            alone += commands_of_sources(command)
        for command in alone:
            path = pathlib.Path(command["directory"], command["file"]).resolve()
            if path.is_relative_to(root):
                self.sources.add(path.relative_to(root).as_posix())
        self.database.mkdir(exist_ok=True)
        (self.database / "compile_commands.json").write_text(json.dumps(alone), encoding="utf-8")

    def source_that_includes(self, header: str) -> Optional[str]:
        """The source of the header's own name, or one that includes it directly, or through the fewest headers."""
        beside = [source for suffix in SUFFIXES if (source := str(pathlib.Path(header).with_suffix(suffix))) in self.sources]
        seen, files = {header}, [header]
        while files and not beside:
            pattern = [argument for file in files for argument in ("-e", f'include "{file}"')]
            # git grep ends with 1 where it finds nothing.
            result = subprocess.run(["git", "-C", self.root, "grep", "--untracked", "-lF", *pattern], capture_output=True,
                                    text=True, check=False)
            found = [file for file in result.stdout.splitlines() if file.endswith(SUFFIXES) and file not in seen]
            beside = sorted(file for file in found if file in self.sources)
            seen.update(found)
            files = found
        return beside[0] if beside else None


def run_tidy(tidy: str, build: Build, source: str, line_filter: str, deadline: float) -> Optional[tuple[int, str]]:
    """Exit status and findings of clang-tidy on one source; None when the time is over."""
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        return None
    command = [tidy, "-p", build.database, "--quiet", "--warnings-as-errors=*", f"--line-filter={line_filter}",
               build.root / source]
    try:
        result = subprocess.run(command, cwd=build.root, capture_output=True, text=True, check=False, timeout=seconds)
    except subprocess.TimeoutExpired:
        return None
    # Counts of hidden findings go to stderr, but so does the reason why a source cannot be read at all.
    return result.returncode, result.stdout if result.stdout or result.returncode == 0 else result.stderr


def main(argv) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).parent.parent, help="checkout")
    start = parser.add_mutually_exclusive_group()
    start.add_argument("--base", default="main", help="commit or branch [main]")
    start.add_argument("--last-commit", action="store_true", help="what the last commit changed, in the place of BASE")
    parser.add_argument("--build-dir", type=pathlib.Path, help="a built tree [build/release]")
    parser.add_argument("--minutes", type=float, default=10, help="how long it may take in all [10]")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="sources at a time")
    arguments = parser.parse_args(argv)
    deadline = time.monotonic() + 60 * arguments.minutes
    root = arguments.root.resolve()
    tidy = shutil.which("clang-tidy-22")
    try:
        if tidy is None:
            raise TidyError("clang-tidy-22 is missing; run scripts/install-packages.sh")
        build = Build(root, (arguments.build_dir or root / "build/release").resolve())
        if arguments.last_commit:
            start = since = first_parent(root)
        else:
            start, since = git(root, "merge-base", arguments.base, "HEAD").strip(), arguments.base
        changes = changed_lines(root, start)
    except UnknownParent as error:
        print(f"tidy: left out: all that changed: {error}")
        return SKIPPED
    except TidyError as error:
        print(f"tidy: error: {error}", file=sys.stderr)
        return 1

    # Source to look at: the changed files that are seen through it. Those with the most changed lines come first.
    def size(file):
        return sum(last - first + 1 for first, last in changes[file])

    sources: dict[str, list[str]] = {}
    left_out = []
    for file in sorted(changes, key=size, reverse=True):
        source = file if file in build.sources else build.source_that_includes(file)
        if source is None:
            reason = "no source that includes it" if file.endswith(".h") else "other sources alone"
            left_out.append(f"{file}: {build.folder.name} compiles {reason}")
        else:
            sources.setdefault(source, []).append(file)

    line_filter = json.dumps([{"name": str(root / file), "lines": lines} for file, lines in sorted(changes.items())])
    with ThreadPoolExecutor(max(1, arguments.jobs)) as pool:
        results = pool.map(lambda source: run_tidy(tidy, build, source, line_filter, deadline), sources)
        findings = 0
        for source, result in zip(sources, results):
            if result is None:
                left_out += [f"{file}: the time was over" for file in sources[source]]
            elif result[0] != 0:
                findings += 1
                print(result[1].rstrip(), flush=True)

    for line in left_out:
        print(f"tidy: left out: {line}")
    print(f"tidy: {len(changes)} files changed since {since}, {len(changes) - len(left_out)} looked at, "
          f"{len(left_out)} left out; {findings} sources with findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
