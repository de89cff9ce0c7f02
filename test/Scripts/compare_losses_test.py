#!/usr/bin/env python3
"""Tests of examples/compare-losses.py."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "examples" / "compare-losses.py"


class CompareLossesTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def metrics(self, name, losses, norms=None):
        path = self.folder / f"{name}.jsonl"
        norms = norms or [1.0] * len(losses)
        lines = [{"step": i + 1, "loss": loss, "grad_norm": norm} for i, (loss, norm) in enumerate(zip(losses, norms))]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines + [{"step": 1, "eval_loss": 3.0}]))
        return path

    def compare(self, *paths):
        return subprocess.run([sys.executable, SCRIPT, *paths], capture_output=True, text=True, check=False)

    def test_equal_runs(self):
        done = self.compare(self.metrics("one", [2.0, 1.0]), self.metrics("four", [2.0001, 1.0]))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, "step         one        four\n   1    2.000000    2.000100\n   2    1.000000    1.000000\n"
                                      "losses and gradient norms agree within 0.0001\n")

    def test_a_loss_that_differs(self):
        done = self.compare(self.metrics("one", [2.0, 1.0]), self.metrics("four", [2.0, 1.00011]))
        self.assertEqual(done.returncode, 1)
        self.assertIn("differ by more than 0.0001", done.stdout)

    def test_a_norm_that_differs_in_the_third_run(self):
        one = self.metrics("one", [2.0])
        done = self.compare(one, one, self.metrics("four", [2.0], [0.999]))
        self.assertEqual(done.returncode, 1)

    def test_a_loss_that_is_no_number(self):
        done = self.compare(self.metrics("one", [2.0]), self.metrics("four", [float("nan")]))
        self.assertEqual(done.returncode, 1)

    def test_other_steps(self):
        done = self.compare(self.metrics("one", [2.0, 1.0]), self.metrics("four", [2.0]))
        self.assertEqual(done.returncode, 1)
        self.assertIn("the runs have other steps", done.stderr)

    def test_files_that_are_none(self):
        broken = self.folder / "broken.jsonl"
        broken.write_text('{"loss": 1}\n')
        for path, message in ((broken, "this is no line of metrics"), (self.folder / "missing", "No such file")):
            done = self.compare(path, path)
            self.assertEqual(done.returncode, 1)
            self.assertIn(message, done.stderr)
        self.assertEqual(self.compare(broken).returncode, 1)


if __name__ == "__main__":
    unittest.main()
