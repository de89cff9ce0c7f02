#!/usr/bin/env python3
"""Tests of scripts/check-layering.py: a tree that keeps the rules passes, and breaking each rule once is reported."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "check-layering.py"
PAGE = "docs/architecture.md"

# Every layer uses all that it may.
GOOD_TREE = {
    PAGE: (ROOT / PAGE).read_text(),
    "types/element_type.h": "#include <string_view>\n",
    "types/CMakeLists.txt": "bowline_add_runtime_library(bowline_types SOURCES element_type.cc)\n",
    "kernels/registry/philox.h": "#include <cstdint>\n",
    "kernels/registry/registry.h": '#include "absl/types/span.h"\n#include "kernels/registry/philox.h"\n',
    "kernels/cpu/matmul.cc": '#include <sys/mman.h>\n#include "kernels/registry/registry.h"\n',
    "kernels/benchmarks/onednn.cc": '#include <dnnl.h>\n#include "kernels/registry/registry.h"\n',
    "kernels/CMakeLists.txt": "bowline_add_runtime_library(bowline_kernels SOURCES cpu/matmul.cc LINKS absl::span)\n",
    "runtime/base/status.h": '#include "absl/status/status.h"\n#include <nlohmann/json.hpp>\n',
    "runtime/base/CMakeLists.txt":
        "bowline_add_runtime_library(bowline_base SOURCES a.cc LINKS bowline_types absl::status)\n",
    "runtime/plan/view/plan_view.h": '#include "runtime/base/status.h"\n#include "runtime/plan/plan_generated.h"\n',
    "runtime/plan/CMakeLists.txt": "bowline_add_runtime_library(bowline_plan SOURCES a.cc LINKS bowline_base)\n",
    "runtime/executor/session.cc": '#include "kernels/registry/registry.h"\n#include "runtime/plan/view/plan_view.h"\n',
    "runtime/tools/tool_support.h": '#include "runtime/base/status.h"\n',
    "runtime/tools/CMakeLists.txt": "bowline_add_runtime_library(bowline_tool_support SOURCES a.cc)\n"
                                    "bowline_add_tool(bowline-run SOURCES bowline-run.cc LINKS bowline_plan)\n",
    "dialects/Graph/GraphOps.td": 'include "mlir/IR/OpBase.td"\n',
    "dialects/Graph/GraphOps.cpp": '#include "mlir/IR/Builders.h"\n#include "types/element_type.h"\n#include "llvm/ADT/STLExtras.h"\n'
                                   '#include "kernels/registry/philox.h"\n',
    "dialects/Graph/CMakeLists.txt": "bowline_add_compiler_library(BowlineGraphDialect SOURCES GraphOps.cpp)\n",
    "passes/Fusion/Fuse.cpp": '#include "dialects/Graph/GraphOps.h"\n#include "kernels/registry/registry.h"\n'
                              '#include "runtime/base/edit_distance.h"\n',
    "passes/Fusion/CMakeLists.txt": "bowline_add_compiler_library(BowlineFusion SOURCES Fuse.cpp\n"
                                    "  LINKS BowlineGraphDialect bowline_kernels)\n",
    "frontends/hf/Import.cpp": '#include "dialects/Graph/GraphOps.h"\n#include "runtime/base/status.h"\n',
    "frontends/hf/CMakeLists.txt": "bowline_add_compiler_library(BowlineHf SOURCES Import.cpp LINKS bowline_base)\n",
    "compiler/Emit/Emit.cpp": '#include "passes/Fusion/Passes.h"\n#include "runtime/plan/view/plan_view.h"\n',
    "checker/Checker.cpp": '#include "checker/Checker.h"\n#include "runtime/plan/view/plan_view.h"\n',
    "checker/CMakeLists.txt": "bowline_add_runtime_library(bowline_check SOURCES Checker.cpp LINKS bowline_plan)\n",
    "checker/tools/CMakeLists.txt": "bowline_add_tool(bowline-check SOURCES bowline-check.cpp\n"
                                    "  LINKS bowline_check bowline_tool_support)\n",
    "checker/tools/bowline-check.cpp": '#include "checker/Checker.h"\n#include "runtime/tools/tool_support.h"\n',
    "compiler/tools/bowline-compile.cpp": '#include "frontends/hf/Import.h"\n#include "runtime/tools/tool_support.h"\n',
    "test/Unit/Base/status_test.cc": '#include "runtime/base/status.h"\n#include <gtest/gtest.h>\n',
}

# (file, its whole content, where the violation is reported, words of the message)
BROKEN = (
    ("kernels/cpu/a.cc", '#include "mlir/IR/Builders.h"\n', ":1", ("MLIR or LLVM", "kernels is a leaf")),
    ("kernels/cpu/a.cc", '#include "runtime/base/status.h"\n', ":1", ("runtime/base/status.h", "kernels is a leaf")),
    ("kernels/cpu/a.cc", "#include <nlohmann/json.hpp>\n", ":1", ("library 'nlohmann'", "kernels is a leaf")),
    ("kernels/cpu/a.cc", "#include <dnnl.hpp>\n", ":1", ("library 'dnnl'", "kernels is a leaf")),
    ("kernels/cpu/a.cc", '#include "../../runtime/base/status.h"\n', ":1", ("runtime/base/status.h",)),
    ("types/a.h", '#include "absl/strings/str_cat.h"\n', ":1", ("library 'absl'", "the standard library alone")),
    ("types/a.h", '#include "runtime/base/status.h"\n', ":1", ("runtime/base/status.h",)),
    ("runtime/hal/a.cc", '// text\n\n#include "llvm/ADT/StringRef.h"\n', ":3", ("MLIR or LLVM", "never the compiler")),
    ("runtime/hal/a.cc", '#  include "compiler/Emit/Emit.h"\n', ":1", ("compiler/Emit/Emit.h",)),
    ("runtime/hal/a.cc", '#include "dialects/Graph/GraphOps.h"\n', ":1", ("dialects/Graph/GraphOps.h",)),
    ("runtime/base/a.h", '#include "runtime/plan/view/plan_view.h"\n', ":1", ("bottom of the runtime",)),
    ("runtime/plan/a.cc", '#include "kernels/registry/registry.h"\n', ":1", ("runtime/plan is shared",)),
    ("dialects/Graph/A.cpp", '#include "passes/Fusion/Passes.h"\n', ":1", ("upstream MLIR only",)),
    ("dialects/Graph/A.cpp", '#include "kernels/registry/registry.h"\n', ":1", ("kernels/registry/registry.h",)),
    ("dialects/Graph/A.cpp", '#include "absl/strings/str_cat.h"\n', ":1", ("library 'absl'",)),
    ("dialects/Graph/A.td", 'include "passes/Fusion/Passes.td"\n', ":1", ("passes/Fusion/Passes.td",)),
    ("passes/Fusion/A.cpp", '#include "compiler/Emit/Emit.h"\n', ":1", ("passes use dialects",)),
    ("targets/cpu/a.cc", '#include "compiler/Codegen/Backend.h"\n', ":1", ("compiler/Codegen/Backend.h",)),
    ("passes/Fusion/A.cpp", '#include "kernels/cpu/parallel/parallel.h"\n', ":1", ("kernels/cpu/parallel/parallel.h",)),
    ("passes/Fusion/A.cpp", '#include "runtime/plan/view/plan_view.h"\n', ":1", ("runtime/plan/view/plan_view.h",)),
    ("passes/Stages/Schedules/A.cpp", '#include "llvm/ADT/StringRef.h"\n', ":1", ("MLIR or LLVM", "pure functions")),
    ("passes/Stages/Schedules/A.cpp", '#include "dialects/Dist/DistOps.h"\n', ":1", ("know no IR",)),
    ("passes/Fusion/A.cpp", '#include "runtime/base/json.h"\n', ":1", ("runtime/base/json.h",)),
    ("frontends/hf/A.cpp", '#include "passes/Fusion/Passes.h"\n', ":1", ("frontends produce graph IR",)),
    ("frontends/hf/A.cpp", '#include "runtime/plan/view/plan_view.h"\n', ":1", ("runtime/plan/view/plan_view.h",)),
    ("compiler/Emit/A.cpp", '#include "runtime/executor/session.h"\n', ":1", ("meet only in",)),
    ("compiler/Emit/A.cpp", '#include "frontends/hf/Import.h"\n', ":1", ("frontends/hf/Import.h",)),
    ("compiler/tools/a.cpp", '#include "runtime/tools/other.h"\n', ":1", ("runtime/tools/other.h",)),
    ("checker/A.cpp", '#include "mlir/IR/Builders.h"\n', ":1", ("reads plans, not IR",)),
    ("checker/A.cpp", '#include "compiler/Emit/Emit.h"\n', ":1", ("reads plans, not IR",)),
    ("checker/tools/bowline-inspect.cpp", '#include "llvm/ADT/StringRef.h"\n', ":1", ("runtime-only build",)),
    ("test/Unit/Base/a_test.cc", '#include "mlir/IR/Builders.h"\n', ":1", ("tests of the runtime",)),
    ("kernels/cpu/CMakeLists.txt", "bowline_add_runtime_library(k SOURCES a.cc LINKS bowline_base)\n", ":1",
     ("k links bowline_base of runtime/base",)),
    ("kernels/cpu/CMakeLists.txt", "target_link_libraries(bowline_kernels PUBLIC MLIR)\n", ":1", ("links MLIR",)),
    ("runtime/hal/CMakeLists.txt", "# LINKS MLIR\nbowline_add_runtime_library(h\n  SOURCES a.cc\n  LINKS LLVM)\n", ":2",
     ("h links LLVM", "never the compiler")),
    ("runtime/hal/CMakeLists.txt", "bowline_add_compiler_library(h SOURCES a.cc)\n", ":1",
     ("use bowline_add_runtime_library",)),
    ("dialects/Plan/CMakeLists.txt", "bowline_add_compiler_library(D SOURCES a.cpp LINKS BowlineFusion)\n", ":1",
     ("D links BowlineFusion of passes/Fusion",)),
    ("frontends/gguf/CMakeLists.txt", "bowline_add_compiler_library(F SOURCES a.cpp LINKS bowline_plan)\n", ":1",
     ("F links bowline_plan of runtime/plan",)),
)


# (replaced text of the page, new text, words of the message): the page that has the rules is wrong.
WRONG_PAGES = (
    ("<!-- layering -->", "<!-- layers -->", ("0 lines '<!-- layering -->'",)),
    ("<!-- layering -->\n", "<!-- layering -->\n\n", ("marks no table",)),
    ("| `kernels` | `kernels` | no |", "| `kernels` | no |", ("5 cells", "6 columns")),
    ("| `kernels` | `kernels` | no |", "| `kernels` | `kernels` | never |", ("'never'", "yes or no")),
    ("| `kernels` | `kernels` | no |", "| `kernels` | `kernel` | no |", ("'kernel' is in none of",)),
    ("| `kernels` | `kernels` | no |", "| `kernels/cpu` | `kernels` | no |", ("no row for 'kernels'",)),
    ("| `kernels/benchmarks` | `kernels` | no |", "| `kernels` | `kernels` | no |", ("two rows for 'kernels'",)),
)


def write_tree(root, files):
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def check(root, *arguments):
    return subprocess.run([sys.executable, SCRIPT, "--root", root, *arguments], capture_output=True, text=True,
                          check=False)


class CheckLayeringTest(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.root = pathlib.Path(self.scratch.name)
        write_tree(self.root, GOOD_TREE)

    def test_tree_that_keeps_the_rules(self):
        result = check(self.root)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("0 violations", result.stdout)

    def test_each_rule_broken_once(self):
        for file, content, line, words in BROKEN:
            with self.subTest(file=file, content=content):
                self.assertNotIn(file, GOOD_TREE)
                write_tree(self.root, {file: content})
                result = check(self.root)
                (self.root / file).unlink()
                self.assertEqual(result.returncode, 1)
                # An include against the rules may close a circle, too.
                messages = [message for message in result.stderr.splitlines() if "is in a circle" not in message]
                self.assertEqual(len(messages), 1, result.stderr)
                self.assertTrue(messages[0].startswith(f"{file}{line}: "), messages[0])
                for word in words:
                    self.assertIn(word, messages[0])

    def test_circles(self):
        def include(name):
            return f'#include "{name}"\n'

        # A header, and a detail that only its source includes.
        write_tree(self.root, {"kernels/a/part.h": include("kernels/a/whole.h"), "kernels/a/whole.h": ""})
        self.assertEqual(check(self.root).stderr, "")
        write_tree(self.root, {"kernels/a/whole.cc": include("kernels/a/part.h")})
        result = check(self.root)
        self.assertEqual(result.returncode, 1)
        self.assertIn("kernels/a/part: is in a circle with kernels/a/whole: files use each other in one direction; ", result.stderr)
        (self.root / "kernels/a/whole.cc").unlink()
        # A dialect's class and its operations; two dialects.
        write_tree(self.root, {"dialects/A/Dialect.h": "", "dialects/A/Dialect.cpp": include("dialects/A/Ops.h"),
                               "dialects/A/Ops.h": include("dialects/A/Dialect.h")})
        self.assertEqual(check(self.root).stderr, "")
        write_tree(self.root, {"dialects/A/Dialect.cpp": include("dialects/B/Ops.h"),
                               "dialects/B/Ops.h": include("dialects/A/Dialect.h")})
        self.assertIn("dialects/A/Dialect: is in a circle with dialects/B/Ops: ", check(self.root).stderr)
        (self.root / "dialects/A/Dialect.cpp").unlink()
        # Folders, also one in another.
        write_tree(self.root, {"kernels/b/one.h": "", "kernels/b/two.h": include("kernels/a/whole.h"),
                               "kernels/b/in/three.h": include("kernels/b/one.h")})
        self.assertEqual(check(self.root).stderr, "")
        write_tree(self.root, {"kernels/a/user.cc": include("kernels/b/one.h")})
        self.assertIn("kernels/a: is in a circle with kernels/b: folders use each other in one direction", check(self.root).stderr)
        (self.root / "kernels/a/user.cc").unlink()
        # Seen from the room, two folders inside of it are one.
        write_tree(self.root, {"kernels/b/in/five.h": include("kernels/a/whole.h"), "kernels/a/in/six.h": include("kernels/b/one.h")})
        self.assertIn("kernels/a: is in a circle with kernels/b: ", check(self.root).stderr)
        (self.root / "kernels/a/in/six.h").unlink()
        # Named from its own folder.
        write_tree(self.root, {"kernels/a/seven.h": '#include "../b/one.h"\n'})
        self.assertIn("kernels/a: is in a circle with kernels/b: ", check(self.root).stderr)
        (self.root / "kernels/a/seven.h").unlink()
        self.assertEqual(check(self.root).stderr, "")
        write_tree(self.root, {"kernels/b/four.h": include("kernels/b/in/three.h")})
        self.assertIn("kernels/b: is in a circle with kernels/b/in: ", check(self.root).stderr)

    def test_page_decides(self):
        write_tree(self.root, {"kernels/cpu/a.cc": '#include "runtime/base/status.h"\n'})
        self.assertEqual(check(self.root).returncode, 1)
        page = GOOD_TREE[PAGE].replace("| `kernels` | `kernels` | no |", "| `kernels` | `kernels`, `runtime/base` | no |")
        write_tree(self.root, {PAGE: page})
        self.assertEqual((check(self.root).returncode, check(self.root).stderr), (0, ""))

    def test_page_without_rules(self):
        for before, after, words in WRONG_PAGES:
            with self.subTest(after=after):
                self.assertIn(before, GOOD_TREE[PAGE])
                write_tree(self.root, {PAGE: GOOD_TREE[PAGE].replace(before, after, 1)})
                result = check(self.root)
                self.assertEqual((result.returncode, result.stdout), (1, ""))
                for word in words:
                    self.assertIn(word, result.stderr)
        (self.root / PAGE).unlink()
        self.assertIn("architecture.md", check(self.root).stderr)

    def test_long_file_is_a_warning(self):
        write_tree(self.root, {"runtime/base/long.cc": "\n" * 601, "runtime/base/short.cc": "\n" * 600})
        result = check(self.root)
        self.assertEqual(result.returncode, 0)
        self.assertIn("runtime/base/long.cc: warning: 601 lines", result.stderr)
        self.assertNotIn("short.cc", result.stderr)

    def build(self, tool, library):
        """A build folder with one executable `tool` that needs a library called `library`."""
        build = self.root / "build"
        (build / "bin").mkdir(parents=True, exist_ok=True)
        write_tree(build, {"library.c": "int f(void) { return 0; }\n", "main.c": "int f(void); int main() { return f(); }\n"})
        shared = build / f"lib{library}.so"
        subprocess.run(["clang-22", "-shared", "-fPIC", build / "library.c", f"-Wl,-soname,{shared.name}", "-o", shared],
                       check=True)
        subprocess.run(["clang-22", build / "main.c", shared, "-o", build / "bin" / tool], check=True)
        return build

    def test_executable_that_needs_mlir(self):
        build = self.build("bowline-run", "MLIR-test")
        result = check(self.root, "--build-dir", build)
        self.assertEqual(result.returncode, 1)
        self.assertIn("bin/bowline-run: needs libMLIR-test.so: runtime uses runtime and kernels", result.stderr)

    def test_executable_that_needs_another_library(self):
        result = check(self.root, "--build-dir", self.build("bowline-run", "harmless"))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("1 executables", result.stdout)

    def test_compiler_tool_may_need_mlir(self):
        build = self.build("bowline-opt", "LLVM-test")
        write_tree(self.root, {"compiler/tools/CMakeLists.txt": "bowline_add_tool(bowline-opt SOURCES a.cpp)\n"})
        self.assertEqual(check(self.root, "--build-dir", build).returncode, 0)

    def test_runtime_only_build(self):
        build = self.root / "build"
        source = build / "a.c"
        write_tree(build, {
            "include/mlir/IR/x.h": "", "a.c": "int main() { return 0; }\n", "b.c": '#include "mlir/IR/x.h"\nint b;\n',
            "build.ninja": "rule cc\n  command = clang-22 -MD -MF $out.d $flags $in -o $out\n"
                           "  deps = gcc\n  depfile = $out.d\n"
                           "build bin/a: cc a.c\nbuild b.o: cc b.c\n  flags = -c -Iinclude\n",
            "bin/.keep": "", "compile_commands.json": f'[{{"file": "{source}", "command": "clang-22 -c {source}"}}]'})
        subprocess.run(["ninja", "-C", build, "bin/a"], check=True, capture_output=True)
        clean = check(self.root, "--build-dir", build, "--no-mlir-in-build")
        self.assertEqual((clean.returncode, clean.stderr), (0, ""))

        subprocess.run(["ninja", "-C", build, "b.o"], check=True, capture_output=True)
        result = check(self.root, "--build-dir", build, "--no-mlir-in-build")
        self.assertEqual(result.returncode, 1)
        self.assertIn("b.o: reads include/mlir/IR/x.h: a runtime-only build touches no path", result.stderr)

        write_tree(build, {"compile_commands.json":
                           '[{"file": "a.c", "command": "cc -isystem /usr/lib/llvm-22/include -c a.c"}]'})
        result = check(self.root, "--build-dir", build, "--no-mlir-in-build")
        self.assertIn("a.c: is compiled with '-isystem /usr/lib/llvm-22/include'", result.stderr)

    def test_runtime_only_build_that_is_empty(self):
        (self.root / "build").mkdir()
        result = check(self.root, "--build-dir", self.root / "build", "--no-mlir-in-build")
        self.assertEqual(result.returncode, 1)
        self.assertIn("error", result.stderr)


if __name__ == "__main__":
    unittest.main()
