#!/usr/bin/env python3
"""Trains the model of examples/demo on the same text in f32, in f32 that rounds otherwise, and in bf16, and compares.

Training amplifies the smallest difference: two f32 runs whose sums are only added in another order drift apart too. So
the distance of bf16 from f32 is printed beside that of the second f32 run, which is what no other type can be expected
to stay below: step by step, and as means over 50 steps, which is the curve one sees in a plot. And because one pair of
runs differs by its luck, all is done from several seeds, of weights and of the order of data, and the means over the
seeds are compared: what is left of a difference then is the type's. Exit status 1 where that curve of bf16 is further
than one percent from that of f32.
"""

import argparse
import concurrent.futures
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIMIT = 0.01
WINDOW = 50
# Flags of `bowline compile` for each kind of run; the other kinds are compared with the first.
KINDS = {
    "f32": [],
    # Rows and columns are summed in another order.
    "f32 rounded otherwise": ["--target-cpu", "x86-64-v3", "--disable-step", "split-column-reductions"],
    "bf16": ["--dtype", "bf16"],
}


def losses(path):
    with open(path, encoding="utf-8") as file:
        return [line["loss"] for line in map(json.loads, file) if "loss" in line]


def means(values, window=WINDOW):
    return [sum(values[i:i + window]) / window for i in range(len(values) - window + 1)]


def worst(wide, narrow):
    """(relative difference, index from 1) of the step where the two differ most."""
    return max((abs(n - w) / w, step) for step, (w, n) in enumerate(zip(wide, narrow, strict=True), start=1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / "build/release/bin", help="folder with the tools")
    parser.add_argument("--steps", type=int, default=500, help="training steps, at least 50")
    parser.add_argument("--seeds", type=int, default=2, help="how many runs of each kind")
    parser.add_argument("--threads", type=int, default=0, help="of each run; 0: one per processor")
    parser.add_argument("--jobs", type=int, default=1, help="runs at the same time")
    options = parser.parse_args()
    if options.steps < WINDOW:
        parser.error(f"--steps must be at least {WINDOW}, got {options.steps}")
    if options.seeds < 1 or options.jobs < 1 or options.threads < 0:
        parser.error("--seeds and --jobs must be at least 1, and --threads not negative")

    def run(tool, *arguments):
        subprocess.run([options.tools / tool, *map(str, arguments)], check=True)

    with tempfile.TemporaryDirectory(prefix="bowline-precision-") as name:
        folder = pathlib.Path(name)
        text = subprocess.run(["bible", "-f", "gen1:1-rev22:21"], stdin=subprocess.DEVNULL, capture_output=True,
                              check=True)
        (folder / "text.txt").write_bytes(text.stdout)
        run("bowline-data", "tokenize", folder / "text.txt", "--tokenizer", "bytes", "-o", folder / "text.bin")

        def train(seed, kind):
            plan, metrics = folder / f"{seed}-{kind}.plan", folder / f"{seed}-{kind}.jsonl"
            run("bowline-compile", ROOT / "examples/demo", "--batch", 4, "--seq", 256, "--lr", "2e-3", "--lr-schedule",
                "cosine", "--warmup-steps", options.steps // 10, "--decay-steps", options.steps, "--seed", seed,
                "--threads", options.threads, *KINDS[kind], "-o", plan)
            run("bowline-run", plan, "--data", folder / "text.bin", "--order", "shuffle", "--steps", options.steps,
                "--metrics", metrics, "--quiet")
            return losses(metrics)

        work = [(seed, kind) for seed in range(options.seeds) for kind in KINDS]
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            curves = dict(zip(work, pool.map(lambda item: train(*item), work)))

    def report(label, wide, others):
        print(f"{label}, f32: loss {wide[0]:.3f} at the start, {means(wide)[-1]:.4f} over the last {WINDOW} of "
              f"{len(wide)} steps")
        distance = {}
        for kind, curve in others.items():
            step_difference, step = worst(wide, curve)
            distance[kind], end = worst(means(wide), means(curve))
            print(f"{label}, {kind}: {means(curve)[-1]:.4f} over the last {WINDOW}; furthest from f32: "
                  f"{distance[kind]:.2%} as a mean over {WINDOW} steps (ending with step {end + WINDOW - 1}), "
                  f"{step_difference:.2%} at one step ({step})")
        return distance

    wide, *others = KINDS
    for seed in range(options.seeds):
        report(f"seed {seed}", curves[seed, wide], {kind: curves[seed, kind] for kind in others})
    average = {kind: [statistics.fmean(step) for step in
                      zip(*(curves[seed, kind] for seed in range(options.seeds)), strict=True)] for kind in KINDS}
    distance = report(f"mean of {options.seeds} seeds", average[wide], {kind: average[kind] for kind in others})
    return 0 if distance["bf16"] <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
