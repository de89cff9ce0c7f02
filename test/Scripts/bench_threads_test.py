#!/usr/bin/env python3
"""Tests of scripts/bench-threads.py without a run: numbers, the table, the goal."""

import importlib.util
import pathlib
import types
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
specification = importlib.util.spec_from_file_location("bench_threads", ROOT / "scripts" / "bench-threads.py")
bench_threads = importlib.util.module_from_spec(specification)
specification.loader.exec_module(bench_threads)

class Case:
    name = "tiny"


CASE = Case()
OPTIONS = types.SimpleNamespace(threads=2, goal=0.97)


class BenchThreadsTest(unittest.TestCase):
    def test_ratios_are_of_runs_beside_each_other(self):
        rounds = [(100, 150, 100, 150), (10, 20, 40, 25), (1000, 1900, 1000, 2000)]
        one, several, ratio, again, lower, upper, whole = bench_threads.summarize(rounds)
        self.assertEqual((one, several), (100, 150))
        self.assertEqual((ratio, again), (1.5, 1.0))
        self.assertEqual((lower, upper), (1.0, 2.5))
        self.assertEqual(whole, 0.95)

    def test_beside_loops_nothing_is_compared_with_whole_teams(self):
        self.assertIsNone(bench_threads.summarize([(1, 1, 1, None)])[-1])

    def test_the_goal_is_for_every_ratio(self):
        for measured, good in (((100, 98, 100, 100), True), ((100, 96, 100, 90), False), ((100, 190, 100, 200), False),
                               ((100, 98, 100, None), True)):
            lines, reached = bench_threads.table(OPTIONS, {(CASE, "flat", 0): [measured]})
            self.assertEqual(len(lines), 2)
            self.assertEqual(reached, good, measured)

    def test_arguments(self):
        self.assertEqual(bench_threads.parse_arguments(["--models", "tiny,gpt2", "--weights", "sharp"]).weights, ["sharp"])
        with self.assertRaises(SystemExit):
            bench_threads.parse_arguments(["--models", "huge"])


if __name__ == "__main__":
    unittest.main()
