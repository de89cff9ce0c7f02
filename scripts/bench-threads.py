#!/usr/bin/env python3
"""Measures what several threads are worth, on an idle machine and beside other programs.

Each model is compiled for one thread and for --threads, and trains from flat weights, as they are drawn, and from sharp
ones (sharp_weights.py). Plans take turns while so many other processes as --busy says do nothing but count; beside none,
a third run has teams that stay whole whatever happens (--driver cpu:teams=whole). From each run come the tokens per
second over its steps, without the first tenth of them. A run takes --run-seconds, and rounds go on for --minutes.

Printed are medians over rounds. A round is one thread, several threads, one thread again, and then teams that stay
whole. `ratio` is the median of tokens/s with several threads over the geometric mean of the two runs around it, `again`
that of the second of these over the first, and `spread` the middle half of the latter: what two runs of the same plan
differ by, beside which a ratio says nothing. `of whole` is the median of tokens/s over those of teams that stay whole.

Exit status: 0 when each ratio and each `of whole` is at least --goal, 2 otherwise.
"""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
from peers import cases  # pylint: disable=wrong-import-position
import sharp_weights  # pylint: disable=wrong-import-position

WEIGHTS = ("flat", "sharp")


def models(folder):
    """Name on the command line -> (directory with config.json, batch, positions)."""
    result = {"tiny": (ROOT / "test/Models/llama-tiny", 4, 32), "first": (ROOT / "examples/first-model", 4, 256)}
    for name, model in cases.models().items():
        directory = folder / f"{name}.config"
        directory.mkdir()
        (directory / "config.json").write_text(json.dumps(model.config), encoding="utf-8")
        result[name] = (directory, model.batch, model.seq)
    return result


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


class Case:
    """A model with its plans and weights."""

    def __init__(self, options, name, shape, folder):
        self.options, self.name, self.folder = options, name, folder / name
        self.directory, self.batch, self.seq = shape
        self.tools = options.build_dir / "bin"
        self.folder.mkdir()
        self.plans = {threads: self.compile(threads) for threads in (1, options.threads)}
        self.steps = 0
        self.weights = {"flat": self.first_checkpoint()}
        self.weights["sharp"] = self.folder / "sharp"
        shutil.copytree(self.weights["flat"], self.weights["sharp"])
        sharp_weights.sharpen(self.weights["sharp"] / "model.safetensors")
        self.steps = self.calibrate()

    def compile(self, threads):
        plan = self.folder / f"{threads}.plan"
        run(self.tools / "bowline-compile", self.directory, "--mode", "train", "--batch", self.batch, "--seq", self.seq,
            "--threads", threads, "-o", plan)
        return plan

    def train(self, threads, steps, *more):
        """Milliseconds of each step."""
        metrics = self.folder / "metrics.jsonl"
        metrics.unlink(missing_ok=True)
        run(self.tools / "bowline-run", self.plans[threads], "--data", self.options.data, "--steps", steps, "--metrics",
            metrics, "--quiet", "--allow-non-finite", *more)
        lines = map(json.loads, metrics.read_text(encoding="utf-8").splitlines())
        return [line["step_ms"] for line in lines if "step_ms" in line]

    def first_checkpoint(self):
        self.train(1, 1, "--save", self.folder / "saved")
        checkpoint, = (self.folder / "saved").glob("step-*")
        (checkpoint / "optimizer.safetensors").unlink()
        return checkpoint

    def calibrate(self):
        """Steps that one thread does in --run-seconds; at least ten."""
        median = statistics.median(self.train(1, 10, "--weights", self.weights["flat"]))
        return max(10, round(self.options.run_seconds * 1e3 / median))

    def tokens_per_second(self, threads, weights, *more):
        times = self.train(threads, self.steps, "--weights", self.weights[weights], *more)
        return self.batch * self.seq / statistics.mean(times[len(times) // 10:]) * 1e3

    def round(self, weights, busy):
        """Tokens per second of one thread, several, one again, and of teams that stay whole or None."""
        several = self.options.threads
        with busy_loops(busy):
            rates = [self.tokens_per_second(threads, weights) for threads in (1, several, 1)]
            whole = None if busy else self.tokens_per_second(several, weights, "--driver", "cpu:teams=whole")
        return (*rates, whole)


def summarize(rounds):
    """(tokens/s of one thread, of several, ratio, again, quartiles of again, ratio to teams that stay whole or None)"""
    ones, severals, agains, wholes = zip(*rounds)
    ratio = statistics.median(s / (a * b) ** 0.5 for a, s, b, _ in rounds)
    again = [b / a for a, _, b, _ in rounds]
    lower, _, upper = statistics.quantiles(again, method="inclusive") if len(rounds) > 1 else again * 3
    whole = None if wholes[0] is None else statistics.median(s / w for _, s, _, w in rounds)
    return (statistics.median(ones + agains), statistics.median(severals), ratio, statistics.median(again), lower, upper,
            whole)


def measure(options, cases_to_run):
    """Rounds of every case in turns until the time is up, at least one."""
    keys = [(case, weights, busy) for case in cases_to_run for weights in options.weights for busy in options.busy]
    rounds = {key: [] for key in keys}
    deadline = time.monotonic() + options.minutes * 60
    while True:
        for key in keys:
            case, weights, busy = key
            rounds[key].append(case.round(weights, busy))
        if time.monotonic() >= deadline:
            return rounds


def table(options, rounds):
    """(lines of the table, whether all goals are reached)"""
    lines = [f"{'model':>12}{'weights':>9}{'busy loops':>12}{'1 thread':>12}{f'{options.threads} threads':>12}{'ratio':>8}"
             f"{'again':>8}{'spread':>13}{'of whole':>10}{'rounds':>8}"]
    good = True
    for (case, weights, busy), measured in rounds.items():
        one, several, ratio, again, lower, upper, whole = summarize(measured)
        good = good and ratio >= options.goal and (whole is None or whole >= options.goal)
        lines.append(f"{case.name:>12}{weights:>9}{busy:>12}{one:>12.0f}{several:>12.0f}{ratio:>8.2f}{again:>8.2f}"
                     f"{lower:>8.2f}-{upper:.2f}{'-' if whole is None else format(whole, '.2f'):>10}{len(measured):>8}")
    return lines, good


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


def names(known):
    def parse(text):
        chosen = text.split(",")
        for name in chosen:
            if name not in known:
                raise argparse.ArgumentTypeError(f"'{name}' is not among {','.join(known)}")
        return chosen
    return parse


def parse_arguments(arguments=None):
    known = ["tiny", "first", *cases.models()]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build-dir", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--models", type=names(known), default=["tiny", "first"], help=f"of {','.join(known)}")
    parser.add_argument("--weights", type=names(WEIGHTS), default=list(WEIGHTS), help=f"of {','.join(WEIGHTS)}")
    parser.add_argument("--data", default=str(ROOT / "test/oracle/tokens.bin"))
    parser.add_argument("--threads", type=positive, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--busy", type=counts, default=[0, 1, 2], metavar="N,...", help="loops beside it")
    parser.add_argument("--minutes", type=float, default=5, help="for all rounds together")
    parser.add_argument("--run-seconds", type=float, default=2, help="of a run on one thread")
    parser.add_argument("--goal", type=float, default=0.97,
                        help="of each ratio: loops in chunks cost 2 %% of a tiny model's step, and runs differ by 1 %%")
    return parser.parse_args(arguments)


def main():
    options = parse_arguments()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        shapes = models(folder)
        to_run = [Case(options, model, shapes[model], folder) for model in options.models]
        print(f"{len(os.sched_getaffinity(0))} processors, other load {os.getloadavg()[0]:.1f}; tokens/s\n", flush=True)
        lines, good = table(options, measure(options, to_run))
        print("\n".join(lines))
        print(f"\nload after: {os.getloadavg()[0]:.1f}")
    return 0 if good else 2


if __name__ == "__main__":
    sys.exit(main())
