#!/usr/bin/env python3
"""Tests of scripts/bench-peers.py without PyTorch and JAX: numbers, tables, arguments, how processes are watched."""

import contextlib
import importlib.util
import io
import json
import os
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
specification = importlib.util.spec_from_file_location("bench_peers", ROOT / "scripts" / "bench-peers.py")
bench_peers = importlib.util.module_from_spec(specification)
specification.loader.exec_module(bench_peers)
from peers import cases, environment, processes, results  # pylint: disable=wrong-import-position

MIB = 2**20


def lines(*losses, every=2.0):
    """Metrics lines that come every so many seconds, from 10 s on."""
    return [{"step": i + 1, "loss": loss, "grad_norm": 1.0, "at": 10 + i * every} for i, loss in enumerate(losses)]


def summary(losses=(5.0, 4.0, 3.0), every=2.0, start_s=0.0, peak=100 * MIB, children=False, **more):
    run = {"start_s": start_s, "lines": lines(*losses, every=every), "peak_bytes": peak,
           "tree_bytes": peak + 50 * MIB * children, "others_cpus": 0.25, "load": 1.5}
    return {**results.summarize([dict(run, children=children)], 1000, 1), **more}


def make_row(dtype="f32", weights="flat", **measured):
    row = {"title": "demo", "weights": weights, "dtype": dtype, "failed": {}, "broken": False, "peak_gflop_per_s": 200.0,
           "measured": measured}
    results.compare(row)
    return row


class NumbersTest(unittest.TestCase):
    def test_steps_are_between_lines_and_warmup_is_left_out(self):
        times = [{"at": at} for at in (9.0, 12.0, 13.5, 14.0)]
        self.assertEqual(results.step_seconds(times, 1), [3.0, 1.5, 0.5])
        self.assertEqual(results.step_seconds(times, 2), [1.5, 0.5])

    def test_medians_are_over_the_steps_of_all_runs(self):
        runs = [{"start_s": start, "lines": lines(5, 5, 5, every=every), "peak_bytes": peak, "tree_bytes": peak + 1,
                 "children": False, "others_cpus": 0.0, "load": 0.0}
                for start, every, peak in ((1.0, 1.0, 30), (2.0, 2.0, 10), (9.0, 4.0, 20))]
        numbers = results.summarize(runs, 500, 1)
        self.assertEqual(numbers["step_s"], 2.0)
        self.assertEqual(numbers["tokens_per_s"], 250.0)
        self.assertEqual(numbers["fastest_step_s"], 1.0)
        self.assertEqual(numbers["first_step_s"], 12.0)
        self.assertEqual((numbers["peak_bytes"], numbers["tree_bytes"]), (20, 21))

    def test_ratios_take_the_fastest_and_the_thriftiest_peer(self):
        row = make_row(bowline=summary(every=1.0, peak=60 * MIB), eager=summary(every=2.0, peak=80 * MIB),
                       jax=summary(every=4.0, peak=75 * MIB))
        speed, memory = results.ratios(row)
        self.assertAlmostEqual(speed, 2.0)
        self.assertAlmostEqual(memory, 0.8)

    def test_ratios_need_both_sides(self):
        self.assertIsNone(results.ratios(make_row(bowline=summary())))
        self.assertIsNone(results.ratios(make_row(jax=summary())))

    def test_share_of_the_bound(self):
        row = make_row(bowline=summary(every=2.0, gflop=100.0), jax=summary())
        self.assertAlmostEqual(results.share_of_bound(row), 0.25)  # 100 GFLOP at 200 a second take 0.5 s of 2 s
        row["peak_gflop_per_s"] = None
        self.assertIsNone(results.share_of_bound(row))


class AgreementTest(unittest.TestCase):
    def test_the_largest_relative_difference_counts(self):
        self.assertAlmostEqual(results.difference(lines(5.0, 4.4), lines(5.0, 4.0), "loss"), 0.1)

    def test_of_sharp_weights_the_first_step_alone(self):
        runs = {"bowline": summary(losses=(5.0, 4.0, 3.0)), "eager": summary(losses=(5.0, 9.0, 9.0))}
        self.assertFalse(make_row(**runs)["measured"]["bowline"]["agrees"])
        self.assertTrue(make_row(weights="sharp", **runs)["measured"]["bowline"]["agrees"])

    def test_only_the_first_steps_are_compared(self):
        same = [5.0] * cases.COMPARED_STEPS["flat"]
        self.assertEqual(results.difference(lines(*same, 9.0), lines(*same, 1.0), "loss"), 0)

    def test_no_number_never_agrees(self):
        for bad in (float("nan"), float("inf"), None):
            self.assertEqual(results.difference(lines(bad), lines(5.0), "loss"), float("inf"))
        self.assertEqual(results.difference([], lines(5.0), "loss"), float("inf"))

    def test_tolerances_by_type(self):
        for dtype, shift, agrees in (("f32", 1.0009, True), ("f32", 1.0011, False), ("bf16", 1.019, True),
                                     ("bf16", 1.021, False)):
            row = make_row(dtype, eager=summary(), bowline=summary((5.0, 4.0, 3.0 * shift)))
            self.assertEqual(row["measured"]["bowline"]["agrees"], agrees, (dtype, shift))
            self.assertEqual(results.all_well({"rows": [row]}), agrees)

    def test_without_eager_another_is_compared_with(self):
        row = make_row(jax=summary(), bowline=summary())
        self.assertEqual(row["measured"]["bowline"]["reference"], "jax")


class TableTest(unittest.TestCase):
    def result(self, *rows):
        return {"rows": rows, "versions": {"torch": "1.0"},
                "settings": {"rounds": 1, "warmup": 1, "steps": 2, "threads": 2}}

    def test_every_number_is_in_its_column(self):
        row = make_row(bowline=summary(every=1.0, start_s=0.5, peak=60 * MIB, gflop=100.0),
                       compile=summary((5.0, 4.0, 3.5), every=2.0, children=True))
        text = results.markdown(self.result(row))
        self.assertIn("| demo | flat | f32 | 2.00 | 0.40 | 100 GFLOP / 200 GFLOP/s = 500 ms | 50% | 0.25 | 1.5 to 1.5 |", text)
        self.assertIn("| demo | flat | f32 | Bowline | 1000 | 1000 (1000) | 60 | 10.5 | "
                      "**differ** (1e-01; norms 0e+00) |", text)
        self.assertIn("| demo | flat | f32 | torch.compile | 500 | 2000 (2000) | 100 (150 with its compiler's processes) | "
                      "10.0 | compared with |", text)

    def test_every_row_has_as_many_cells_as_its_head(self):
        row = make_row(eager=summary(), compile=summary(children=True))
        row["failed"] = {"bowline": "has no --dtype bf16", "jax": "failed: exit code 1"}
        for table in results.markdown(self.result(row)).split("\n\n")[:2]:
            self.assertEqual(len({line.count("|") for line in table.splitlines()}), 1, table)

    def test_what_failed_is_said_and_has_no_numbers(self):
        row = make_row("bf16", eager=summary())
        row["failed"] = {"bowline": "has no --dtype bf16"}
        text = results.markdown(self.result(row))
        self.assertIn("| demo | flat | bf16 | Bowline | has no --dtype bf16 | | | | |", text)
        self.assertIn("| demo | flat | bf16 | - | - | - | - |", text)
        self.assertTrue(results.all_well(self.result(row)))
        row["broken"] = True
        self.assertFalse(results.all_well(self.result(row)))


class ArgumentsTest(unittest.TestCase):
    def error(self, *arguments):
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors), self.assertRaises(SystemExit) as caught:
            bench_peers.parse_arguments(list(arguments))
        self.assertEqual(caught.exception.code, 2)
        return errors.getvalue()

    def test_parts_are_selected_in_the_table_s_order(self):
        arguments = bench_peers.parse_arguments(["--models", "gpt2,demo", "--peers", "jax,bowline", "--dtypes", "bf16"])
        self.assertEqual((arguments.models, arguments.peers, arguments.dtypes),
                         (["demo", "gpt2"], ["bowline", "jax"], ["bf16"]))

    def test_errors_say_what_there_is(self):
        self.assertIn("'bert' is not among demo,gpt2,llama-160m", self.error("--models", "demo,bert"))
        self.assertIn("'f16' is not among f32,bf16", self.error("--dtypes", "f16"))
        self.assertIn("'' is not among", self.error("--peers", ""))
        self.assertIn("'0' must be a number from 1 on", self.error("--rounds", "0"))
        self.assertIn("is more than the", self.error("--threads", "100000"))

    def test_without_tools_it_says_what_to_build(self):
        process = processes.subprocess.run([sys.executable, ROOT / "scripts/bench-peers.py", "--tools", "/nowhere"],
                                           capture_output=True, text=True, check=False)
        self.assertEqual(process.returncode, 1)
        self.assertIn("/nowhere/bowline-compile does not exist; run 'make build'", process.stderr)


class EnvironmentTest(unittest.TestCase):
    def test_versions_are_pinned(self):
        self.assertLessEqual({"torch", "jax", "numpy", "safetensors"}, set(environment.wanted()))

    def test_what_is_missing(self):
        have = environment.wanted()
        have["torch"] += "+cpu"
        self.assertEqual(environment.missing(have), [])
        del have["torch"]
        have["jax"] = "0.0.1"
        wanted = environment.wanted()
        self.assertEqual(environment.missing(have), [f"torch=={wanted['torch']}", f"jax=={wanted['jax']}"])

    def test_a_folder_that_is_no_environment_has_nothing(self):
        self.assertEqual(environment.installed(pathlib.Path("/nowhere/bin/python")), {})


class ProcessTest(unittest.TestCase):
    def run_python(self, program, time_limit_s=60, metrics_option="--metrics"):
        with tempfile.TemporaryDirectory() as folder:
            return processes.run([sys.executable, "-c", program], pathlib.Path(folder) / "log", dict(os.environ),
                                 os.sched_getaffinity(0), time_limit_s, metrics_option)

    def test_lines_are_received_when_they_are_written(self):
        run = self.run_python("import sys, time\nfile = open(sys.argv[2], 'w')\nfor i in range(3):\n"
                              "  print('{\"loss\": %d}' % i, file=file, flush=True); time.sleep(1)")
        self.assertEqual((run.exit_code, [line["loss"] for line in run.lines]), (0, [0, 1, 2]))
        for earlier, later in zip(run.lines, run.lines[1:]):
            self.assertGreater(later["at"] - earlier["at"], 0.15)
        self.assertGreaterEqual(run.wall_s, run.lines[-1]["at"])
        self.assertGreaterEqual(run.others_cpus, 0)

    def test_the_last_line_before_the_end_is_not_lost(self):
        run = self.run_python("import sys\nopen(sys.argv[2], 'w').write('{\"loss\": 1}\\n' * 500)")
        self.assertEqual(len(run.lines), 500)

    def test_peak_memory_outlives_its_release(self):
        run = self.run_python("x = bytearray(b'1') * (200 << 20); del x", metrics_option=None)
        self.assertGreater(run.peak_bytes, 200 * MIB)
        self.assertLess(run.peak_bytes, 300 * MIB)
        self.assertFalse(run.children)

    def test_memory_of_children_counts_and_they_end(self):
        child = "import time; x = bytearray(b'1') * (150 << 20); print(flush=True); time.sleep(600)"
        run = self.run_python("import subprocess, sys, time\n"
                              f"p = subprocess.Popen([sys.executable, '-c', {child!r}], stdout=subprocess.PIPE)\n"
                              "p.stdout.readline(); print(p.pid, flush=True); time.sleep(2)", metrics_option=None)
        self.assertTrue(run.children)
        self.assertGreater(run.tree_bytes, run.peak_bytes + 140 * MIB)
        fields = processes.stat_fields(int(run.tail))
        self.assertTrue(not fields or fields[0] in "ZX", fields)

    def test_failures_and_time_limits(self):
        run = self.run_python("import sys; sys.exit('out of | luck')")
        self.assertEqual(run.exit_code, 1)
        self.assertEqual(str(bench_peers.failure("jax", run)), "failed: jax, exit code 1: out of / luck")
        run = self.run_python("import time; time.sleep(600)", time_limit_s=0.5)
        self.assertEqual(run.exit_code, 124)
        self.assertEqual(str(bench_peers.failure("jax", run)), "failed: jax, ran past the time limit")

    def test_results_are_json(self):
        json.dumps(make_row(bowline=summary(gflop=1.0), jax=summary()))


if __name__ == "__main__":
    unittest.main()
