#!/usr/bin/env python3
"""Tests of scripts/plot-loss.py."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "plot-loss.py"


class PlotLossTest(unittest.TestCase):
    def plot(self, records, *arguments, encoding="utf-8"):
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
            file.write("".join(line if isinstance(line, str) else json.dumps(line) + "\n" for line in records))
            file.flush()
            environment = dict(os.environ, PYTHONIOENCODING=encoding)
            return subprocess.run([sys.executable, SCRIPT, file.name, *arguments], capture_output=True, text=True,
                                  encoding="utf-8", env=environment, check=False)

    def test_falling_line_goes_from_corner_to_corner(self):
        records = [{"step": step, "loss": 5.0 - 0.1 * step} for step in range(1, 11)]
        result = self.plot(records, "--ascii", "--width", "20", "--height", "10")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        lines = result.stdout.splitlines()
        # One star a column, one a row, over the ten columns and ten rows.
        self.assertEqual([line.split("|")[1] for line in lines[:10]], [" " * row + "*" for row in range(10)])
        self.assertEqual([line.split("|")[0].strip() for line in (lines[0], lines[5], lines[9])], ["4.9", "4.4", "4"])
        self.assertEqual(lines[10], " " * 9 + "+" + "-" * 10)
        self.assertEqual(lines[12], "loss: 4.9 at step 1, 4 at step 10")

    def test_points_of_one_column_are_averaged(self):
        # Noise of +-1 around a constant, two points a column: a flat line.
        records = [{"step": step, "loss": 3.0 + (-1) ** step} for step in range(1000)]
        result = self.plot(records, "--ascii", "--width", "60", "--height", "4")
        lines = result.stdout.splitlines()
        self.assertLess(float(lines[0].split("|")[0]), 3.1)
        self.assertGreater(float(lines[3].split("|")[0]), 2.9)

    def test_braille(self):
        records = [{"step": step, "loss": float(step)} for step in range(1, 41)]
        result = self.plot(records, "--width", "30", "--height", "5")
        picture = [character for character in result.stdout if 0x2800 < ord(character) <= 0x28FF]
        # 20 columns of 2 dots each and 5 rows of 4: each of the 40 steps has its column of dots.
        self.assertGreaterEqual(len(picture), 20)
        self.assertEqual(sum(bin(ord(c) - 0x2800).count("1") for c in picture), 40)

    def test_ascii_where_the_terminal_knows_no_braille(self):
        result = self.plot([{"step": 1, "loss": 1.0}, {"step": 2, "loss": 2.0}], encoding="ascii")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertTrue(result.stdout.isascii())

    def test_one_point_and_constant(self):
        for records in ([{"step": 7, "loss": 2.5}], [{"step": step, "loss": 2.5} for step in range(5)]):
            result = self.plot(records, "--ascii")
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertIn("*", result.stdout)

    def test_width_is_kept(self):
        records = [{"step": step, "loss": 1.0 / step} for step in range(1, 500)]
        for width in (20, 33, 80):
            lines = self.plot(records, "--width", str(width)).stdout.splitlines()[:-1]
            self.assertLessEqual(max(map(len, lines)), width)

    def test_other_key_other_lines_and_repeated_steps(self):
        records = [{"step": 1, "loss": 9.0}, {"event": "saved"}, {"step": 1, "eval_loss": 4.0}, "\n",
                   {"step": 2, "eval_loss": 3.0}, {"step": 2, "eval_loss": 2.0}]
        result = self.plot(records, "--key", "eval_loss")
        self.assertIn("eval_loss: 4 at step 1, 2 at step 2", result.stdout)

    def test_values_that_are_not_finite_are_counted(self):
        records = [{"step": 1, "loss": 1.0}, '{"step": 2, "loss": NaN}\n', {"step": 3, "loss": None}]
        self.assertIn("2 steps have no finite loss", self.plot(records).stdout)

    def test_bad_input(self):
        for records, words in (([], "no line has 'step'"), (['{"step": 1, "lo'], "line 1: not a JSON object"),
                               (["[1]\n"], "line 1: not a JSON object"), ([{"step": 1}], "finite 'loss'")):
            result = self.plot(records)
            self.assertEqual(result.returncode, 1)
            self.assertIn(words, result.stderr)
            self.assertEqual(result.stdout, "")
        missing = subprocess.run([sys.executable, SCRIPT, "/nonexistent"], capture_output=True, text=True, check=False)
        self.assertEqual(missing.returncode, 1)
        self.assertIn("/nonexistent", missing.stderr)


if __name__ == "__main__":
    unittest.main()
