#!/usr/bin/env python3
"""Checks who includes and links whom, against the table `<!-- layering -->` of docs/architecture.md.

Reads every source, header, TableGen file and CMakeLists.txt of the layers below. With --build-dir also looks into built
executables of the layers that use no MLIR, and with --no-mlir-in-build into what the compiler of that build was told and
read. Also finds circles: among folders, where a folder and one inside it are two; among folders with all that is inside
them, but for the top ones; and among files, where a header and its source are one. Each violation is one line on stderr: FILE:LINE: who uses whom: the rule; what to do. Files over 600 lines
are warnings.

Exit status: 0 when every rule holds, 1 otherwise.
"""

import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
from typing import NamedTuple, Optional

from markdown_tables import TableError, names_in, read_table

TOP_FOLDERS = ("checker", "compiler", "dialects", "frontends", "kernels", "passes", "runtime", "targets", "test", "types")
SOURCE_SUFFIXES = {".h", ".cc", ".cpp", ".cu", ".inc", ".td"}
MAX_LINES = 600
PAGE = "docs/architecture.md"

EVERYBODY_MAY_USE = "types"  # beside what the table says

COMPILER_INFRASTRUCTURE = ("mlir", "mlir-c", "llvm", "llvm-c", "clang", "lld")


class Layer(NamedTuple):
    """The headers and libraries that files below `path` may use."""

    path: str  # folder or file, from the root
    repository: tuple[str, ...]  # folders and headers of this repository that it may include
    mlir: bool  # may include and link MLIR and LLVM
    third_party: Optional[tuple[str, ...]]  # other libraries by the first part of the header's name; None: any
    rule: str
    remedy: str


NO_MLIR = "move the code that needs it to compiler/, and hand the result over in the plan"


def read_layers(page: pathlib.Path) -> list[Layer]:
    """The rules as the page states them."""
    layers = []
    for row in read_table(page, "layering", columns=6):
        files, repository, mlir, third_party, rule, remedy = row.cells
        if mlir not in ("yes", "no"):
            raise TableError(f"{page}:{row.line}: '{mlir}' does not say whether MLIR and LLVM may be used; write yes or no")
        folders = TOP_FOLDERS if repository == "everything" else names_in(repository)
        for folder in folders:
            if folder.split("/")[0] not in TOP_FOLDERS:
                raise TableError(f"{page}:{row.line}: '{folder}' is in none of the folders {', '.join(TOP_FOLDERS)}")
        libraries = None if third_party == "any" else names_in(third_party)
        layers += [Layer(path, folders, mlir == "yes", libraries, rule, remedy) for path in names_in(files)]
    paths = [layer.path for layer in layers]
    for folder in TOP_FOLDERS:
        if folder not in paths:
            raise TableError(f"{page}:1: the table 'layering' has no row for '{folder}'; say what it may use")
    twice = sorted({path for path in paths if paths.count(path) > 1})
    if twice:
        raise TableError(f"{page}:1: the table 'layering' has two rows for '{twice[0]}'; join them")
    return layers


class Violation(NamedTuple):
    where: str  # file:line, or file
    what: str
    rule: str
    remedy: str

    def __str__(self):
        return f"{self.where}: {self.what}: {self.rule}; {self.remedy}"


def is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + "/")


class Rules:
    """All layers. Of several that match a file, the one with the longest path decides."""

    def __init__(self, layers: list[Layer]):
        self.layers = layers

    def layer_of(self, path: str) -> Layer:
        return max((layer for layer in self.layers if is_below(path, layer.path)), key=lambda layer: len(layer.path))


# --- Includes -------------------------------------------------------------------------------------------------------

INCLUDE = re.compile(r'^\s*#?\s*include\s*([<"])([^>"]+)[>"]')
# Folders of the C library and the kernel that headers without a library live in.
SYSTEM_FOLDERS = ("sys", "linux", "arpa", "netinet", "net", "asm", "bits", "experimental")


def resolved(root: pathlib.Path, file: str, target: str, quoted: bool) -> str:
    """The path from the root of a header that `file` names from its own folder; `target` for any other."""
    if quoted and (root / file).parent.joinpath(target).exists():
        path = (root / file).parent.joinpath(target).resolve()
        if path.is_relative_to(root):
            return path.relative_to(root).as_posix()
    return target


def violation_of_include(root: pathlib.Path, file: str, layer: Layer, target: str, quoted: bool):
    """(used file, rule, remedy) when `file` may not include `target`; None when it may."""
    target = resolved(root, file, target, quoted)
    first = target.split("/")[0]
    if first in TOP_FOLDERS:
        if any(is_below(target, allowed) for allowed in (*layer.repository, EVERYBODY_MAY_USE)):
            return None
        return f"includes {target}", layer.rule, layer.remedy
    if first in COMPILER_INFRASTRUCTURE:
        if layer.mlir:
            return None
        return f"includes {target} (MLIR or LLVM)", layer.rule, NO_MLIR
    library = first if "/" in target else ("dnnl" if target.startswith("dnnl") else None)
    if library is None or library in SYSTEM_FOLDERS or layer.third_party is None or library in layer.third_party:
        return None
    return f"includes {target} (library '{library}')", layer.rule, layer.remedy


def source_files(root: pathlib.Path):
    for folder in TOP_FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SOURCE_SUFFIXES and path.is_file():
                yield path.relative_to(root).as_posix()


def check_includes(root: pathlib.Path, rules: Rules) -> tuple[list[Violation], list[str]]:
    violations, warnings = [], []
    for file in source_files(root):
        lines = (root / file).read_text(encoding="utf-8", errors="replace").splitlines()
        if len(lines) > MAX_LINES:
            warnings.append(f"{file}: warning: {len(lines)} lines; split files of more than {MAX_LINES}")
        layer = rules.layer_of(file)
        for number, line in enumerate(lines, 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            found = violation_of_include(root, file, layer, match.group(2), quoted=match.group(1) == '"')
            if found:
                violations.append(Violation(f"{file}:{number}", *found))
    return violations, warnings


# --- Circles --------------------------------------------------------------------------------------------------------

# The files of one dialect may be in a circle: its class registers attributes and operations, whose headers include its own.
DIALECTS = "dialects"


def circles(users: dict[str, set[str]]) -> list[list[str]]:
    """The strongly connected parts of a graph that have several nodes (Tarjan 1972)."""
    order, lowest, stack, found = {}, {}, [], []

    def visit(node):
        order[node] = lowest[node] = len(order)
        stack.append(node)
        for used in sorted(users.get(node, ())):
            if used not in order:
                visit(used)
            if used in stack:
                lowest[node] = min(lowest[node], lowest[used])
        if lowest[node] == order[node]:
            part = stack[stack.index(node):]
            del stack[stack.index(node):]
            if len(part) > 1:
                found.append(sorted(part))

    for node in sorted(users):
        if node not in order:
            visit(node)
    return found


def check_circles(root: pathlib.Path) -> list[Violation]:
    files = set(source_files(root))
    of_files, of_folders = {}, {}
    for file in files:
        if file.startswith("test/"):
            continue
        for line in (root / file).read_text(encoding="utf-8", errors="replace").splitlines():
            match = INCLUDE.match(line)
            target = match and resolved(root, file, match.group(2), quoted=match.group(1) == '"')
            if target not in files:
                continue
            user, used = pathlib.PurePosixPath(file), pathlib.PurePosixPath(target)
            if user.with_suffix("") != used.with_suffix(""):
                of_files.setdefault(str(user.with_suffix("")), set()).add(str(used.with_suffix("")))
            if user.parent != used.parent:
                of_folders.setdefault(str(user.parent), set()).add(str(used.parent))
    found = circles(of_folders)
    # A folder with all that is inside it. Of the top ones, checker and runtime use each other by the table.
    for depth in range(2, max((folder.count("/") + 1 for folder in of_folders), default=0) + 1):
        rooms = {}
        for user, folders in of_folders.items():
            for used in folders:
                a, b = ("/".join(folder.split("/")[:depth]) for folder in (user, used))
                if a != b and a.count("/") == b.count("/") == depth - 1:
                    rooms.setdefault(a, set()).add(b)
        found += [circle for circle in circles(rooms) if circle not in found]
    violations = [Violation(circle[0], f"is in a circle with {', '.join(circle[1:])}", "folders use each other in one direction",
                            "move the part that both need into a folder that both may use")
                  for circle in found]
    return violations + [
        Violation(circle[0], f"is in a circle with {', '.join(circle[1:])}", "files use each other in one direction",
                  "move the part that the others need into a header of its own")
        for circle in circles(of_files) if not is_one_dialect(circle)]


def is_one_dialect(files: list[str]) -> bool:
    return is_below(files[0], DIALECTS) and len({pathlib.PurePosixPath(file).parent for file in files}) == 1


# --- Links ----------------------------------------------------------------------------------------------------------


class Target(NamedTuple):
    name: str
    file: str  # CMakeLists.txt
    line: int
    home: str  # path that says to which layer it belongs
    kind: str  # CMake command that made it
    links: tuple[str, ...]


CMAKE_TARGET = re.compile(
    r"^[ \t]*(bowline_add_(?:runtime_library|compiler_library|tool|unit_test)|add_library|add_executable|"
    r"target_link_libraries)\s*\(([^)]*)\)", re.MULTILINE)
LINK_KEYWORDS = {"PUBLIC", "PRIVATE", "INTERFACE"}


def cmake_targets(root: pathlib.Path) -> list[Target]:
    targets = []
    for folder in TOP_FOLDERS:
        for path in sorted((root / folder).rglob("CMakeLists.txt")):
            file = path.relative_to(root).as_posix()
            text = re.sub(r"#[^\n]*", "", path.read_text(encoding="utf-8"))
            for match in CMAKE_TARGET.finditer(text):
                words = match.group(2).split()
                if not words or "$" in words[0]:
                    continue
                if match.group(1) == "target_link_libraries":
                    links = [word for word in words[1:] if word not in LINK_KEYWORDS]
                elif "LINKS" in words:
                    links = words[words.index("LINKS") + 1:]
                else:
                    links = []
                # A tool belongs where its source is, which need not be where it is declared.
                home = path.parent
                if match.group(1) == "bowline_add_tool" and "SOURCES" in words:
                    home = home / words[words.index("SOURCES") + 1]
                targets.append(Target(words[0], file, text.count("\n", 0, match.start()) + 1,
                                      home.resolve().relative_to(root).as_posix(), match.group(1), tuple(links)))
    return targets


def is_mlir_library(name: str) -> bool:
    return name.startswith(("MLIR", "LLVM", "libMLIR", "libLLVM", "-lMLIR", "-lLLVM", "clang-cpp"))


def check_links(targets: list[Target], rules: Rules) -> list[Violation]:
    homes = {target.name: target.home for target in targets if target.kind != "target_link_libraries"}
    violations = []
    for target in targets:
        # The command line of an existing target counts for the layer that made the target.
        layer = rules.layer_of(homes.get(target.name, target.home))
        where = f"{target.file}:{target.line}"
        if target.kind == "bowline_add_compiler_library" and not layer.mlir:
            violations.append(Violation(where, f"{target.name} is declared with bowline_add_compiler_library, which "
                                        "links MLIR", layer.rule, "use bowline_add_runtime_library"))
        for link in target.links:
            if is_mlir_library(link) and not layer.mlir:
                violations.append(Violation(where, f"{target.name} links {link}", layer.rule, NO_MLIR))
            home = homes.get(link)
            # A library is a whole folder, of which the rules may allow one header.
            allowed_folders = (*layer.repository, EVERYBODY_MAY_USE)
            if home and not any(is_below(home, allowed) or is_below(allowed, home) for allowed in allowed_folders):
                violations.append(Violation(where, f"{target.name} links {link} of {home}", layer.rule, layer.remedy))
    return violations


# --- Builds ---------------------------------------------------------------------------------------------------------

MLIR_LIBRARY = re.compile(r"\blib(?:LLVM|MLIR|clang-cpp)[-.\w]*")


def needed_libraries(binary: pathlib.Path) -> str:
    """The libraries that the executable needs and, where the loader can list them, those that its libraries need."""
    text = ""
    readelf = next(filter(None, map(shutil.which, ("readelf", "llvm-readelf-22", "llvm-readelf"))), None)
    if readelf is None:
        raise FileNotFoundError("neither readelf nor llvm-readelf-22 is installed; install binutils")
    result = subprocess.run([readelf, "-d", binary], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise OSError(f"{readelf} cannot read {binary}: {result.stderr.strip()}")
    text += "\n".join(line for line in result.stdout.splitlines() if "NEEDED" in line)
    if shutil.which("ldd"):
        # The loader also lists the needs of libraries. It fails for foreign architectures, for which readelf must do.
        text += "\n" + subprocess.run(["ldd", binary], capture_output=True, text=True, check=False).stdout
    return text


def executables(build: pathlib.Path):
    for folder in (build / "bin", build / "test" / "bin", build / "lib"):
        for path in sorted(folder.glob("*")):
            if path.is_file() and path.open("rb").read(4) == b"\x7fELF":
                yield path


def check_executables(build: pathlib.Path, targets: list[Target], rules: Rules, every: bool) -> tuple[list[Violation], int]:
    """Violations, and how many executables were looked into: all, or those whose layer uses no MLIR."""
    layers = {target.name: rules.layer_of(target.home) for target in targets
              if target.kind in ("bowline_add_tool", "bowline_add_unit_test")}
    violations, checked = [], 0
    for binary in executables(build):
        layer = layers.get(binary.name)
        if not every and (layer is None or layer.mlir):
            continue
        checked += 1
        libraries = sorted(set(MLIR_LIBRARY.findall(needed_libraries(binary))))
        if libraries:
            rule = layer.rule if layer and not layer.mlir else "this build uses no MLIR or LLVM"
            violations.append(Violation(str(binary), f"needs {', '.join(libraries)}", rule, NO_MLIR))
    return violations, checked


MLIR_PATH_IN_COMMAND = re.compile(r"(?:-I|-isystem|-L|-l|-Wl,\S*?)\s*\S*(?:llvm|mlir)[-\w./]*", re.IGNORECASE)
# The compiler's own headers (lib/clang/...) are part of the compiler.
MLIR_HEADER = re.compile(r"/(?:mlir|llvm)(?:-c)?/[\w/.-]+\.(?:h|def|inc|td)\b")


def check_build_without_mlir(root: pathlib.Path, build: pathlib.Path) -> tuple[list[Violation], int]:
    """Violations in a build's compile commands (compile_commands.json) and in the headers that it read (ninja's log)."""
    rule = "a runtime-only build touches no path of LLVM or MLIR"
    remedy = "guard what asks for it by BOWLINE_BUILD_COMPILER"
    violations = []
    commands = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    for command in commands:
        # Without the checkout's own path, which may well lie below a folder called llvm.
        for option in sorted(set(MLIR_PATH_IN_COMMAND.findall(command["command"].replace(str(root), "")))):
            violations.append(Violation(command["file"], f"is compiled with '{option}'", rule, remedy))
    # Drops files that are no longer built from the log.
    subprocess.run(["ninja", "-C", build, "-t", "recompact"], capture_output=True, check=True)
    dependencies = subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True, check=True).stdout
    current = ""
    for line in dependencies.splitlines():
        if line and not line.startswith(" "):
            current = line.split(":")[0]
        elif MLIR_HEADER.search(line):
            violations.append(Violation(current, f"reads {line.strip()}", rule, remedy))
    return violations, len(commands)


def main(argv) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).parent.parent, help="checkout")
    parser.add_argument("--build-dir", type=pathlib.Path, help="also look into the executables built here")
    parser.add_argument("--no-mlir-in-build", action="store_true",
                        help="the build is a runtime-only one: nothing in it may know MLIR")
    arguments = parser.parse_args(argv)
    if arguments.no_mlir_in_build and not arguments.build_dir:
        parser.error("--no-mlir-in-build needs --build-dir")
    root = arguments.root.resolve()

    try:
        rules = Rules(read_layers(root / PAGE))
    except (OSError, TableError) as error:
        print(f"check-layering: error: {error}", file=sys.stderr)
        return 1

    violations, warnings = check_includes(root, rules)
    violations += check_circles(root)
    targets = cmake_targets(root)
    violations += check_links(targets, rules)
    summary = f"{sum(1 for _ in source_files(root))} files, {len(targets)} link declarations"
    if arguments.build_dir:
        try:
            found, checked = check_executables(arguments.build_dir, targets, rules, every=arguments.no_mlir_in_build)
            violations += found
            summary += f", {checked} executables"
            if arguments.no_mlir_in_build:
                found, commands = check_build_without_mlir(root, arguments.build_dir)
                violations += found
                summary += f", {commands} compile commands"
                if checked == 0 or commands == 0:
                    raise OSError(f"{arguments.build_dir} has no executable or compile command; build it first")
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"check-layering: error: {error}", file=sys.stderr)
            return 1

    for message in warnings + [str(violation) for violation in violations]:
        print(message, file=sys.stderr)
    print(f"layering: {summary}: {len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
