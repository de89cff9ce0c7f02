#!/usr/bin/env python3
"""Tests of scripts/bench.py: what it reads from reports, and that its data file is one that Bowline reads."""

import importlib.util
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
specification = importlib.util.spec_from_file_location("bench", ROOT / "scripts" / "bench.py")
bench = importlib.util.module_from_spec(specification)
specification.loader.exec_module(bench)

BIN = pathlib.Path(sys.argv.pop()).resolve()

REPORT = """===---===
  Total Execution Time: 4.9585 seconds

  ----Wall Time----  ----Name----
    0.2658 (  5.4%)  Canonicalizer
    0.0003 (  0.0%)  (anonymous namespace)::VerifyPhasePass
    0.0001 (  0.0%)    (A) DominanceInfo
    2.1903 ( 44.2%)  (anonymous namespace)::GenerateKernelsPass
    0.1000 (  2.0%)  Canonicalizer
    4.9585 (100.0%)  Total
"""


class BenchTest(unittest.TestCase):
    def test_passes_add_up_by_name_longest_first(self):
        passes = bench.passes(REPORT)
        self.assertEqual(list(passes), ["GenerateKernelsPass", "Canonicalizer", "VerifyPhasePass"])
        self.assertAlmostEqual(passes["Canonicalizer"], 0.3658)

    def test_passes_of_a_real_report(self):
        tools = bench.Tools(BIN)
        with tempfile.TemporaryDirectory() as folder:
            report, wall, cpu = tools.run("bowline-compile", ROOT / "test/Models/llama-tiny", "--mode", "train", "--batch",
                                          1, "--seq", 8, "--timing", "-o", pathlib.Path(folder) / "x.plan")
        passes = bench.passes(report)
        self.assertIn("PackArena", passes)
        self.assertLess(sum(passes.values()), wall + 0.01)
        self.assertGreater(cpu, 0)

    def test_tokens_are_a_dataset(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "tokens.bin"
            bench.write_tokens(path, 1000)
            info = subprocess.run([BIN / "bowline-data", "info", path], capture_output=True, text=True, check=True).stdout
        self.assertRegex(info, r"tokens +1000\n")
        self.assertRegex(info, r"distinct ids +256\n")

    def test_a_tool_that_fails_ends_the_measurement(self):
        with self.assertRaisesRegex(SystemExit, "bowline-check nothing.plan ended with exit code 1"):
            bench.Tools(BIN).run("bowline-check", "nothing.plan")

    def test_the_machine_has_no_name(self):
        self.assertEqual(set(bench.machine()), {"processors", "features", "memory_gib"})


if __name__ == "__main__":
    unittest.main()
