#!/usr/bin/env python3
"""Tests of scripts/check-architecture-page.py on a small tree: what it accepts, and each way in which page and tree differ."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "check-architecture-page.py"

PAGE = """\
# Architecture

<!-- phases -->
| phase | afterwards | folders | verifier |
|---|---|---|---|
| `input` | x | `frontends/hf` | x |
| `fuse` | x | `passes/Fusion` | x |
| `codegen` | x | `compiler/Codegen` | x |
| `memory` | x | `passes/Memory` | x |

<!-- folders -->
| folder | holds |
|---|---|
| `compiler/Codegen` | x |
| `compiler/Pipelines` | x |
| `dialects/Program` | x |
| `frontends/hf` | x |
| `kernels/cpu` | x |
| `passes/Fusion` | x |
| `passes/Memory` | x |
| `test` | x |

Text.
"""

PIPELINE = """\
  step("cse-graph", Phase::Fuse, "early", true, [] { return createCSEPass(); });
  step("fuse", Phase::Fuse, "because", false, [=] { return createOnRanks([] { return createFuse(FuseOptions{1}); }); });
  step("recompute", Phase::Fuse,
       "because", false, [] { return createRecompute(); });
  step("switch", Phase::Fuse, "has no pass", true, nullptr);
  step("generate", Phase::Codegen, "because", false, [=] { return createGeneratePass(options.cpu); });
  step("pack-arena", Phase::Memory, "last", false, [] { return createPackArena(); });
"""

TREE = {
    "docs/architecture.md": PAGE,
    "dialects/Program/Phase.cpp": '    {Phase::Input, "input", "frontends/hf", "x"},\n'
                                  '    {Phase::Fuse, "fuse", "passes/Fusion", "x"},\n'
                                  '    {Phase::Codegen, "codegen", "compiler/Codegen", "x"},\n'
                                  '    {Phase::Memory, "memory", "passes/Memory", "x"},\n',
    "compiler/Pipelines/Pipeline.cpp": PIPELINE,
    "compiler/Pipelines/OnRanks.h": "std::unique_ptr<mlir::Pass> createOnRanks(Create create);\n",
    "compiler/Codegen/Generate.h": "std::unique_ptr<mlir::Pass> createGeneratePass(CpuTarget target);\n",
    "passes/Fusion/Passes.td": 'def Fuse : PhasePass<"fuse", "Fuse"> {\n}\n\ndef Recompute : Pass<"recompute"> {\n}\n',
    "passes/Memory/Passes.td": 'def PackArena : PhasePass<"pack-arena", "Memory"> {\n}\n',
    "passes/CMakeLists.txt": "",
    "frontends/hf/Import.cpp": "",
    "kernels/cpu/matmul/a.cc": "",
}

# (file, replaced text, new text, words of the message)
DIFFERENCES = (
    ("docs/architecture.md", "| `kernels/cpu` | x |\n", "", ("architecture.md:14:", "does not list 'kernels/cpu'")),
    ("docs/architecture.md", "`kernels/cpu`", "`kernels/gpu`", ("architecture.md:18:", "'kernels/gpu', which is no folder")),
    ("docs/architecture.md", "`kernels/cpu`", "`passes/Fusion`", ("lists 'passes/Fusion' twice",)),
    ("docs/architecture.md", "| `input` | x | `frontends/hf` | x |\n", "", ("the phases are input, fuse, codegen, memory",)),
    ("docs/architecture.md", "| `fuse` | x | `passes/Fusion`", "| `fuse` | x | `passes/Memory`",
     ("architecture.md:7:", "'fuse' belongs to passes/Fusion")),
    ("dialects/Program/Phase.cpp", '"passes/Memory"', '"passes/Fusion"', ("phases 'fuse' and 'memory' have the same folder",)),
    ("passes/Memory/Passes.td", '"Memory"', '"Fuse"', ("passes/Memory/Passes.td:1:", "whose folder is passes/Fusion")),
    ("compiler/Pipelines/Pipeline.cpp", 'generate", Phase::Codegen', 'generate", Phase::Fuse',
     ("a step of phase 'fuse' is a pass of compiler/Codegen",)),
    ("compiler/Pipelines/Pipeline.cpp", 'step("', 'add("', ("has no steps",)),
    ("docs/architecture.md", "<!-- folders -->", "", ("0 lines '<!-- folders -->'",)),
)


class CheckArchitecturePageTest(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.root = pathlib.Path(self.scratch.name)
        for file, text in TREE.items():
            self.write(file, text)

    def write(self, file, text):
        path = self.root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def check(self):
        return subprocess.run([sys.executable, SCRIPT, "--root", self.root], capture_output=True, text=True, check=False)

    def test_page_of_the_tree(self):
        result = self.check()
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_differences(self):
        for file, before, after, words in DIFFERENCES:
            with self.subTest(file=file, before=before, after=after):
                self.assertIn(before, TREE[file])
                self.write(file, TREE[file].replace(before, after))
                result = self.check()
                self.write(file, TREE[file])
                self.assertEqual(result.returncode, 1)
                for word in words:
                    self.assertIn(word, result.stderr)

    def test_new_folder(self):
        self.write("passes/Precision/Lower.cpp", "")
        self.assertIn("does not list 'passes/Precision'", self.check().stderr)


if __name__ == "__main__":
    unittest.main()
