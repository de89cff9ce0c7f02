"""Tests of scripts/check-ptxas.py."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).parents[2] / "scripts" / "check-ptxas.py"

CLEAN = """ptxas info    : Compiling entry function 'good' for 'sm_80'
ptxas info    : Function properties for good
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 31 registers, used 0 barriers
"""
SPILLS = """ptxas info    : Compiling entry function 'bad' for 'sm_90a'
ptxas info    : Function properties for bad
    8 bytes stack frame, 16 bytes spill stores, 48 bytes spill loads
ptxas info    : Used 80 registers, used 1 barriers, 8 bytes cumulative stack size
"""
CALLED = """ptxas info    : Function properties for __called
    104 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
"""


class CheckPtxasTest(unittest.TestCase):
    def run_on(self, log):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "log"
            path.write_text(log)
            return subprocess.run([sys.executable, SCRIPT, path], capture_output=True, text=True, check=False)

    def test_functions_in_registers_pass(self):
        result = self.run_on(CLEAN)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("1 functions, 0 with local memory", result.stdout)

    def test_spills_are_named(self):
        result = self.run_on(CLEAN + SPILLS)
        self.assertEqual(result.returncode, 1)
        self.assertIn("bad for sm_90a: 8 bytes of stack, 16 of spill stores, 48 of spill loads", result.stderr)
        self.assertNotIn("good", result.stderr)

    def test_a_frame_of_a_called_function_is_named(self):
        result = self.run_on(CLEAN + CALLED)
        self.assertEqual(result.returncode, 1)
        self.assertIn("__called for sm_80: 104 bytes of stack", result.stderr)

    def test_an_empty_log_is_refused(self):
        self.assertEqual(self.run_on("").returncode, 1)


if __name__ == "__main__":
    unittest.main()
