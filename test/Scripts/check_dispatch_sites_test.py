#!/usr/bin/env python3
"""Tests of scripts/check-dispatch-sites.py: what is a place, what is a reason, and when the check fails."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "check-dispatch-sites.py"

OPERATIONS = "".join(f"def Graph_Op{index}Op : Graph_Op<\"op{index}\"> {{\n}}\n" for index in range(14))
DEFINITIONS = OPERATIONS + 'def Graph_ReduceOp : Graph_Op<"reduce"> {\n}\ndef Graph_ReadOp : Graph_Op<"read"> {\n}\n'

# (text, its places as "line text")
SOURCES = (
    ("  if (isa<graph::ReduceOp>(op))\n    return;\n", ["1 isa<graph::ReduceOp>"]),
    ("auto a = dyn_cast<ReduceOp>(x);\nauto b = y.getDefiningOp<ReduceOp>();\n",
     ["1 dyn_cast<ReduceOp>", "2 getDefiningOp<ReduceOp>"]),
    ("  .Case<arith::AddFOp,\n        graph::ReduceOp>([] {})\n", ["1 Case<arith::AddFOp, graph::ReduceOp>"]),
    # Typed functions.
    (".Case([&](graph::ReduceOp op) { return 1; })\nmodule.walk([](ReduceOp op) {});\nf.walk(\n    [=](graph::ReduceOp) {});\n",
     ["1 Case([&](graph::ReduceOp", "2 walk([](ReduceOp", "3 walk( [=](graph::ReduceOp)"]),
    (".Case([](graph::ReadOp op) {}); m.walk([](plan::ReduceOp op) {}); llvm::all_of(sums, [](graph::ReduceOp sum) {});\n", []),
    # Operations of other dialects with the same name.
    ("isa<dist::ReduceOp>(op); isa<bowline::stage::ReduceOp>(op); isa<::bowline::graph::ReduceOp>(op);\n",
     ["1 isa<::bowline::graph::ReduceOp>"]),
    # Structure, other dialects, types and builders.
    ("isa<graph::ReadOp>(op); isa<arith::AddFOp>(op); SmallVector<graph::ReduceOp> a; b.create<graph::ReduceOp>();\n", []),
    ("isa<PreReduceOp>(op); is_a<graph::ReduceOp>(op);\n", []),
)

# (text, whether its place has a reason)
REASONS = (
    ("// By name: sums alone.\nif (isa<ReduceOp>(op))\n", True),
    ("if (isa<ReduceOp>(op)) // By name: sums alone.\n", True),
    ("/// By name: sums alone,\n/// in two lines.\nstatic bool f() { return isa<ReduceOp>(op); }\n", True),
    ("// By name: sums alone.\nreturn a &&\n       isa<ReduceOp>(op);\n", True),
    ("// Sums alone.\nif (isa<ReduceOp>(op))\n", False),
    ("// By name: of another statement.\nf();\nif (isa<ReduceOp>(op))\n", False),
)


class CheckDispatchSitesTest(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.root = pathlib.Path(self.scratch.name)
        self.write("dialects/Graph/GraphOps.td", DEFINITIONS)

    def write(self, file, text):
        path = self.root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def check(self, *arguments):
        return subprocess.run([sys.executable, SCRIPT, "--root", self.root, *arguments], capture_output=True, text=True,
                              check=False)

    def test_places(self):
        for text, expected in SOURCES:
            with self.subTest(text=text):
                self.write("passes/Fusion/a.cpp", text)
                lines = self.check("--limit", "9", "--list").stdout.splitlines()[:-1]
                self.assertEqual(lines, [f"passes/Fusion/a.cpp:{line.replace(' ', ': ', 1)}" for line in expected])

    def test_reasons(self):
        for text, has_reason in REASONS:
            with self.subTest(text=text):
                self.write("compiler/Codegen/a.h", text)
                result = self.check("--limit", "9", "--reasons")
                self.assertEqual(result.returncode, 0 if has_reason else 1)
                self.assertEqual("asks for an operation's name without a reason" in result.stderr, not has_reason)

    def test_limit(self):
        self.write("passes/Fusion/a.cpp", "isa<ReduceOp>(a);\nisa<ReduceOp>(b);\n")
        self.write("compiler/Codegen/b.cpp", "isa<ReduceOp>(c);\n")
        self.write("runtime/plan/c.cc", "isa<ReduceOp>(c);\n")
        self.assertEqual(self.check("--limit", "3").returncode, 0)
        result = self.check("--limit", "2")
        self.assertEqual(result.returncode, 1)
        self.assertIn("3 places ask operations of the graph for their names, and 2 may; most: passes/Fusion/a.cpp 2",
                      result.stderr)

    def test_definitions_elsewhere(self):
        self.write("dialects/Graph/GraphOps.td", "def Graph_ReduceOp : Graph_Op;\n")
        self.assertIn("only 1 operations are defined", self.check("--limit", "9").stderr)


if __name__ == "__main__":
    unittest.main()
