#!/usr/bin/env python3
"""Ranks with a card each, whose data NCCL moves, on stand-ins for NVIDIA's libraries: plans of every strategy train as
they do where ranks copy through the host, as threads and as processes; and what becomes of a run that fails."""

import os
import signal
import subprocess
import time

import tools

# No group of these has more than two ranks, so that a sum has one order: results are equal to the bit.
STRATEGIES = [
    ("dp=2",), ("dp=2", "--dtype", "bf16"), ("dp=2", "--zero", "3"), ("tp=2",), ("tp=2", "--sequence-parallel"),
    ("pp=2", "--microbatches", "2"),
]
# Other strategies cover parts of these.
NIGHTLY_STRATEGIES = [("dp=2", "--dtype", "bf16"), ("tp=2",)]
STEPS = 2


class NcclPlans(tools.ToolTest):
    def environment(self, cards=4, **more):
        return tools.with_stand_ins(BOWLINE_STAND_IN_CARDS=str(cards), BOWLINE_CACHE_DIR="off", **more)

    def compile(self, mesh, *flags, model="llama-tiny"):
        plan = self.folder / "x.plan"
        tools.compile_emulated(model, plan, "--batch", "4", "--seq", "8", "--mesh", mesh, *flags)
        return plan

    def arguments(self, plan, *flags, way="nccl", steps=STEPS, graphs=0):
        driver = f"cuda:communicators={way},graphs={graphs}"
        return [plan, "--driver", driver, "--data", tools.TOKENS, "--steps", steps, *flags]

    def run_plan(self, plan, *flags, steps=STEPS, **keywords):
        metrics = self.folder / "metrics.jsonl"
        metrics.unlink(missing_ok=True)
        arguments = self.arguments(plan, "--metrics", metrics, *flags, steps=steps, **keywords)
        done = tools.start("bowline-run", *arguments, env=self.environment())
        message = done.stderr.decode()
        self.assertEqual(done.returncode, 0, message)
        self.assertNotIn("runs are not recorded", message)
        lines = tools.metrics_of(metrics)
        self.assertEqual(len(lines), steps)
        return lines

    def refuse(self, code, says, *arguments, **more):
        done = tools.start("bowline-run", *arguments, env=self.environment(**more))
        message = done.stderr.decode()
        self.assertEqual(done.returncode, code, message)
        for text in says:
            self.assertIn(text, message)

    def test_every_strategy_trains_as_through_the_host(self):
        for mesh, *flags in STRATEGIES:
            if (mesh, *flags) in NIGHTLY_STRATEGIES and not tools.NIGHTLY:
                continue
            with self.subTest(mesh=mesh, flags=flags):
                plan = self.compile(mesh, *flags)
                expected = self.run_plan(plan, way="host")
                self.assertEqual(self.run_plan(plan), expected)
                # The others run as threads alone, to save time.
                if flags and flags[0] == "--zero":
                    self.assertEqual(self.run_plan(plan, "--nproc", 2, way="auto"), expected)

    def test_losses_with_graphs_are_those_without(self):
        for (mesh, *flags), how in ((("tp=2", "--sequence-parallel"), []), (("pp=2", "--microbatches", "2"), ["--nproc", 2]),
                                    (("dp=2,tp=2", "--zero", "3", "--runs-in-flight", "2"), [])):
            with self.subTest(mesh=mesh, how=how):
                plan = self.compile(mesh, *flags)
                streams = self.run_plan(plan, *how, steps=5)
                self.assertEqual(self.run_plan(plan, *how, steps=5, graphs=1), streams)

    def test_graphs_hold_communications(self):
        """A step of this plan has 13 sums. With graphs, NCCL is called for those of the first two steps alone; the others
        are replays of the second one, where it finds an error as well."""
        plan, seventh_step, second_step = self.compile("tp=2"), "1 80 6", "1 20 6"
        arguments = self.arguments(plan, steps=8), self.arguments(plan, steps=8, graphs=1)
        self.refuse(3, ["(operation 80 of communicator 'tp@0')"], *arguments[0],
                    BOWLINE_STAND_IN_NCCL_FAULT=seventh_step)
        tools.succeed("bowline-run", *arguments[1], env=self.environment(BOWLINE_STAND_IN_NCCL_FAULT=seventh_step))
        for how, more in (([], ["rank 0 is in all_reduce"]), (["--nproc", 2], ["entry 'train_step'", "all ranks are alive"])):
            with self.subTest(how=how):
                self.refuse(3, ["a fault of the stand-in", "(operation 20 of communicator 'tp@0')", *more], *arguments[1],
                            *how, BOWLINE_STAND_IN_NCCL_FAULT=second_step)

    def test_groups_of_several_axes(self):
        """Sums of four ranks begin at another rank for each part, as on a ring of cards."""
        for mesh, flags, how in (("dp=2,tp=2", ["--zero", "3", "--sequence-parallel"], []),
                                 ("pp=2,tp=2", ["--microbatches", "2"], ["--nproc", 4])):
            with self.subTest(mesh=mesh):
                plan = self.compile(mesh, *flags, model="gpt2-tiny")
                expected = self.run_plan(plan, way="host")
                for got, line in zip(self.run_plan(plan, *how), expected):
                    for key in ("loss", "grad_norm"):
                        self.assertAlmostEqual(float(got[key]) / float(line[key]), 1, delta=1e-6)

    def test_losses_are_those_of_processors(self):
        expected = self.folder / "cpu.jsonl"
        plan = self.folder / "cpu.plan"
        tools.succeed("bowline-compile", tools.MODELS / "llama-tiny", "--mode", "train", "--batch", "4", "--seq", "8",
                      *tools.ONE_THREAD, "-o", plan)
        tools.succeed("bowline-run", plan, "--driver", "cpu", "--data", tools.TOKENS, "--steps", STEPS,
                      "--metrics", expected)
        got = self.run_plan(self.compile("dp=2,tp=2"))
        for line, want in zip(got, tools.metrics_of(expected)):
            self.assertAlmostEqual(float(line["loss"]) / float(want["loss"]), 1, delta=1e-5)

    def test_a_rank_that_dies_is_named(self):
        plan, metrics = self.compile("dp=2"), self.folder / "metrics.jsonl"
        arguments = self.arguments(plan, "--nproc", 2, "--metrics", metrics, steps=1000)
        command = [tools.tool("bowline-run"), *map(str, arguments)]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=self.environment()) as process:
            self.addCleanup(process.kill)
            deadline = time.monotonic() + tools.TIMEOUT_SECONDS
            while not metrics.exists() or len(metrics.read_text().splitlines()) < 2:
                self.assertIsNone(process.poll())
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.05)
            children = children_of(process.pid)
            self.assertEqual(len(children), 2)
            os.kill(children[1], signal.SIGKILL)
            _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 3, errors.decode())
        self.assertRegex(errors.decode(), r"cause: rank [01] \(host .*, pid \d+\) died")

    def test_what_nccl_finds_is_explained(self):
        plan = self.compile("tp=2")
        # The sixth operation of each communicator fails on its second member, with ncclRemoteError.
        says = ["NCCL: remote process exited or there was a network error (6): a fault of the stand-in",
                "(operation 5 of communicator 'tp@0')", "rank 0 ", "rank 1 "]
        for how, more in (([], ["rank 0 is in all_reduce"]),
                          (["--nproc", 2], ["entry 'train_step', segment ", "all ranks are alive"])):
            with self.subTest(how=how):
                self.refuse(3, says + more, *self.arguments(plan, *how), BOWLINE_STAND_IN_NCCL_FAULT="1 5 6")

    def test_settings(self):
        plan = self.compile("dp=2")
        self.refuse(1, ["rank 0 and rank 1 share a card", "give each rank a card of its own"], *self.arguments(plan),
                    cards=1)
        self.refuse(1, ["communicators=mpi is none of auto, nccl and host"], *self.arguments(plan, way="mpi"))
        self.refuse(1, ["communicators=nccl, but NCCL emulates no link"],
                    *self.arguments(plan, "--link", "bandwidth=10GB/s,latency=1us"))


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as file:
        return [int(child) for child in file.read().split()]


if __name__ == "__main__":
    tools.main()
