#!/usr/bin/env python3
"""The verdict of scripts/bench-overlap.py, on numbers that it might have measured."""

import argparse
import importlib.util
import pathlib
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
specification = importlib.util.spec_from_file_location("bench_overlap", ROOT / "scripts/bench-overlap.py")
bench_overlap = importlib.util.module_from_spec(specification)
specification.loader.exec_module(bench_overlap)

OPTIONS = argparse.Namespace(goal=0.7, slack=0.1)
# 94 % and 50 % of the communication that could be exposed are hidden.
GOOD_GRADIENTS = bench_overlap.Gradients(serial=(5826, 1400), overlap=(4372, 84))
BAD_GRADIENTS = bench_overlap.Gradients(serial=(5826, 1400), overlap=(5100, 700))


def pipeline(schedule="gpipe", exposed=32.0, unavoidable=32.0):
    """Of a schedule with 260 ms of transfers, by which a step is `exposed` longer, and a simulated one `unavoidable`."""
    return bench_overlap.Pipeline(schedule, free=869, slow=869 + exposed, simulated_free=800,
                                  simulated_slow=800 + unavoidable, transfers=260)


class Verdict(unittest.TestCase):
    def status(self, gradients, *pipelines):
        return bench_overlap.status_of(OPTIONS, gradients, pipelines)

    def test_shares(self):
        self.assertAlmostEqual(GOOD_GRADIENTS.hidden, 0.94)
        measured = pipeline(exposed=39, unavoidable=26)
        self.assertAlmostEqual(measured.hidden, 0.85)
        self.assertAlmostEqual(measured.can_hide, 0.9)
        self.assertAlmostEqual(measured.goal(0.1), 0.8)

    def test_a_schedule_has_to_hide_what_it_can_but_for_the_slack(self):
        self.assertEqual(self.status(None, pipeline(exposed=32 + 25)), 0)
        self.assertEqual(self.status(None, pipeline(exposed=32 + 27)), 2)
        # As 1F1B, which leaves nothing to do meanwhile for half of them.
        self.assertEqual(self.status(None, pipeline("1f1b", exposed=130, unavoidable=130)), 0)
        self.assertEqual(self.status(None, pipeline("zb_h2", exposed=130, unavoidable=10)), 2)

    def test_each_has_to_hold(self):
        good = [pipeline(schedule) for schedule in bench_overlap.SCHEDULES]
        self.assertEqual(self.status(GOOD_GRADIENTS, *good), 0)
        self.assertEqual(self.status(BAD_GRADIENTS, *good), 2)
        for i in range(len(good)):
            bad = [*good[:i], pipeline(exposed=100), *good[i + 1:]]
            self.assertEqual(self.status(GOOD_GRADIENTS, *bad), 2, i)
        self.assertEqual(self.status(None), 2)  # nothing was measured

    def test_a_line_says_which_is_too_little(self):
        self.assertEqual(pipeline().line(0.1).split(), ["gpipe", "869", "901", "260", "87.7%", "87.7%", "77.7%"])
        self.assertTrue(pipeline(exposed=100).line(0.1).endswith("   too little"))

    def test_all_schedules_that_the_compiler_knows(self):
        known = (ROOT / "docs/schedules.md").read_text()
        names = {schedule.partition(":")[0] for schedule in bench_overlap.SCHEDULES}
        self.assertEqual(len(names), len(bench_overlap.SCHEDULES))
        for name in names:
            self.assertIn(name, known)


if __name__ == "__main__":
    unittest.main()
