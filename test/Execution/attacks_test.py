#!/usr/bin/env python3
"""Ranks that lose others at random moments, strangers at the rendezvous, and bf16 under many strategies."""

import os
import random
import signal
import socket
import threading
import time

import processes_test
import tools
from processes_test import free_port, torchrun, tree_of

STEPS = 8
PIPELINE = ("pp=2,dp=2", "--zero", "1", "--microbatches", "2", "--schedule", "1f1b")

# How far a loss in bf16 may be from that of one rank.
BF16_TOLERANCE = 1e-3
BF16_STRATEGIES = [
    ["--mesh", "dp=2"], ["--mesh", "dp=2", "--zero", "1"], ["--mesh", "dp=2", "--zero", "2"],
    ["--mesh", "dp=2", "--zero", "3"], ["--mesh", "dp=2", "--zero", "3", "--microbatches", "2"], ["--mesh", "tp=2"],
    ["--mesh", "tp=2", "--sequence-parallel"], ["--mesh", "dp=2,tp=2", "--zero", "1"],
    ["--mesh", "dp=2,fsdp=2", "--zero", "3"], ["--mesh", "pp=2", "--microbatches", "2"],
    ["--mesh", "pp=2", "--microbatches", "4", "--schedule", "gpipe"],
    ["--mesh", "pp=2", "--microbatches", "4", "--schedule", "zb_h1"],
    ["--mesh", "pp=2,dp=2", "--microbatches", "2", "--zero", "3", "--schedule", "gpipe"],
    ["--mesh", "pp=2,tp=2", "--microbatches", "2", "--recompute", "full"], ["--recompute", "selective", "--mesh", "tp=2"]]


class Signals(processes_test.ProcessTest):
    def training(self, name, *arguments):
        return [self.plan(*PIPELINE), "--data", tools.TOKENS, "--order", "shuffle", "--steps", STEPS, "--save",
                self.folder / name, "--save-every", 1, "--nproc", 4, "--link", "latency=5ms", *arguments]

    def children_of(self, process):
        path = f"/proc/{process.pid}/task/{process.pid}/children"
        with open(path, encoding="ascii") as file:
            return [int(pid) for pid in file.read().split()]

    def saved_step(self, name):
        latest = self.folder / name / "latest"
        return int(latest.read_text().split("-")[1]) if latest.exists() else 0

    def disturb(self, process, name, draw):
        """Sends a signal to a rank some time after a step was saved. Nothing if the run ends before."""
        step = self.saved_step(name) + draw.choice((0, 1, 2))
        while self.saved_step(name) < step or len(children := self.children_of(process)) < 4:
            if process.poll() is not None:
                return
            time.sleep(0.01)
        time.sleep(draw.uniform(0, 0.2))
        try:
            os.kill(draw.choice(children), draw.choice((signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM)))
        except ProcessLookupError:
            pass

    def test_random_signals_change_no_bit(self):
        self.assertEqual(self.run_plan(*self.training("whole")).code, 0)
        for number in range(20 if tools.NIGHTLY else 1):
            with self.subTest(number=number, seed=tools.TEST_SEED):
                draw, name, resume = random.Random(f"{tools.TEST_SEED} {number}"), f"run-{number}", []
                for _ in range(3 * STEPS):
                    process = self.begin(*self.training(name, "--timeout", 2, *resume))
                    self.disturb(process, name, draw)
                    done = self.finish(process)
                    self.assertIn(done.code, (0, 3, 75), done.err)
                    if done.code == 0:
                        break
                    resume = ["--resume", self.folder / name] if self.saved_step(name) > 0 else []
                self.assertEqual(done.code, 0, done.err)
                trees = [tree_of(self.folder / each / f"step-{STEPS:08d}") for each in ("whole", name)]
                self.assertGreater(len(trees[0]), 4)
                self.assertEqual(*trees)


class Strangers(processes_test.ProcessTest):
    def bother(self, port, draw, ends):
        """Connects again and again, and sends bytes that nobody expects."""
        while not ends.is_set():
            try:
                with socket.create_connection(("127.0.0.1", port), timeout=1) as stranger:
                    stranger.sendall(draw.randbytes(draw.choice((0, 1, 4, 16, 64, 4096))))
                    if draw.random() < 0.5:
                        stranger.settimeout(0.05)
                        stranger.recv(64)
            except OSError:
                time.sleep(0.005)

    def test_strangers_at_the_rendezvous_change_nothing(self):
        alone = self.train(self.plan("dp=2"), "--nproc", 2, name="alone.jsonl")
        for number in range(50 if tools.NIGHTLY else 3):
            with self.subTest(number=number, seed=tools.TEST_SEED):
                draw, port, ends = random.Random(f"{tools.TEST_SEED} {number}"), free_port(), threading.Event()
                strangers = [threading.Thread(target=self.bother, args=(port, random.Random(draw.random()), ends))
                             for _ in range(3)]
                metrics = self.folder / f"{number}.jsonl"
                try:
                    for stranger in strangers:
                        stranger.start()
                    ranks = []
                    for rank in draw.sample((0, 1), 2):
                        ranks.append(self.begin(self.plan("dp=2"), "--data", tools.TOKENS, "--steps", 3, "--metrics",
                                                metrics, env=torchrun(rank, 2, port)))
                        time.sleep(draw.uniform(0, 0.3))
                    for process in ranks:
                        done = self.finish(process)
                        self.assertEqual(done.code, 0, done.err)
                finally:
                    ends.set()
                    for stranger in strangers:
                        stranger.join()
                self.assertEqual(tools.metrics_of(metrics), alone)


class Bf16(tools.ToolTest):
    def losses(self, flags):
        plan, metrics = self.folder / "x.plan", self.folder / "m.jsonl"
        tools.succeed("bowline-compile", tools.MODELS / "llama-tiny", "--mode", "train", "--batch", 8, "--seq", 12,
                      "--dtype", "bf16", "--lr", "0.003", *tools.ONE_THREAD, *flags, "-o", plan)
        metrics.unlink(missing_ok=True)
        tools.succeed("bowline-run", plan, "--data", tools.TOKENS, "--steps", 10, "--order", "shuffle", "--metrics", metrics,
                      "--quiet")
        return [float(line["loss"]) for line in tools.metrics_of(metrics)]

    def test_strategies_follow_one_rank(self):
        alone = self.losses([])
        self.assertLess(min(alone), 0.98 * alone[0], "nothing was learned: the comparison would show little")
        for flags in BF16_STRATEGIES if tools.NIGHTLY else BF16_STRATEGIES[7:8]:
            with self.subTest(flags=flags):
                for step, (expected, actual) in enumerate(zip(alone, self.losses(flags), strict=True), start=1):
                    self.assertLess(abs(actual - expected), BF16_TOLERANCE * expected, f"step {step}")


if __name__ == "__main__":
    tools.main()
