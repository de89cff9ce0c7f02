#!/usr/bin/env python3
"""Measures what several threads are worth beside other programs.

A model is compiled for one thread and for --threads. Both plans train in turns while so many other processes as --busy
says do nothing but count. From each run come the tokens per second over its steps, without the first tenth of them.

Printed are medians over --rounds. A round is one thread, several threads, one thread again. `ratio` is the median of
tokens/s with several threads over the geometric mean of the two runs around it, `again` that of the second of these over
the first, and `spread` the middle half of the latter: what two runs of the same plan differ by, beside which a ratio
says nothing.

Exit status: 0 when each ratio is at least --goal, 2 otherwise.
"""

import argparse
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


def run(*command):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"bench-threads: {' '.join(map(str, command))} ended with {result.returncode}:\n{result.stderr}")


@contextlib.contextmanager
def busy_loops(count):
    """So many processes that want a processor, for as long as the block runs."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        time.sleep(0.5)  # until they run, and the scheduler has spread them
        yield
    finally:
        for loop in loops:
            loop.kill()
        for loop in loops:
            loop.wait()


class Bench:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.tools = options.build_dir / "bin"
        self.plans = {threads: self.compile(threads) for threads in (1, options.threads)}

    def compile(self, threads):
        plan = self.folder / f"{threads}.plan"
        run(self.tools / "bowline-compile", self.options.model, "--mode", "train", "--batch", self.options.batch, "--seq",
            self.options.seq, "--threads", threads, "-o", plan)
        return plan

    def tokens_per_second(self, threads):
        metrics = self.folder / "metrics.jsonl"
        metrics.unlink(missing_ok=True)
        run(self.tools / "bowline-run", self.plans[threads], "--data", self.options.data, "--steps", self.options.steps,
            "--metrics", metrics, "--quiet")
        steps = [json.loads(line)["step_ms"] for line in metrics.read_text().splitlines()]
        return self.options.batch * self.options.seq / statistics.mean(steps[len(steps) // 10:]) * 1e3

    def measure(self, busy):
        """Medians of one thread's tokens per second, of several threads', of their ratio, and of one thread over one
        thread, with the quartiles of that."""
        rounds = []
        with busy_loops(busy):
            for _ in range(self.options.rounds):
                one, several, again = [self.tokens_per_second(threads) for threads in (1, self.options.threads, 1)]
                rounds.append((one, several, several / (one * again) ** 0.5, again / one))
        columns = list(zip(*rounds))
        lower, _, upper = statistics.quantiles(columns[-1], method="inclusive") if len(rounds) > 1 else columns[-1] * 3
        return [statistics.median(column) for column in columns], lower, upper


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} must be at least 1")
    return value


def counts(text):
    values = [int(part) for part in text.split(",")]
    if min(values) < 0:
        raise argparse.ArgumentTypeError(f"{min(values)} must not be negative")
    return values


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build-dir", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--model", default=str(ROOT / "test/Models/llama-tiny"))
    parser.add_argument("--data", default=str(ROOT / "test/oracle/tokens.bin"))
    parser.add_argument("--batch", type=positive, default=4)
    parser.add_argument("--seq", type=positive, default=32)
    parser.add_argument("--threads", type=positive, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--busy", type=counts, default=[0, 1, 2], metavar="N,...", help="loops beside it")
    parser.add_argument("--steps", type=positive, default=3000, help="of each run")
    parser.add_argument("--rounds", type=positive, default=7, help="runs of each plan, in turns")
    parser.add_argument("--goal", type=float, default=0.97,
                        help="of each ratio: loops in chunks cost 2 %% of a tiny model's step, and runs differ by 1 %%")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(options, pathlib.Path(name))
        print(f"{options.model}, batch {options.batch}, seq {options.seq}; {len(os.sched_getaffinity(0))} processors, other "
              f"load {os.getloadavg()[0]:.1f}; tokens/s\n")
        print(f"{'busy loops':>10}{'1 thread':>14}{f'{options.threads} threads':>14}{'ratio':>8}{'again':>8}{'spread':>13}", flush=True)
        ratios = []
        for busy in options.busy:
            (one, several, ratio, again), lower, upper = bench.measure(busy)
            ratios.append(ratio)
            print(f"{busy:>10}{one:>14.0f}{several:>14.0f}{ratio:>8.2f}{again:>8.2f}{lower:>8.2f}-{upper:.2f}", flush=True)
    return 0 if min(ratios) >= options.goal else 2


if __name__ == "__main__":
    sys.exit(main())
