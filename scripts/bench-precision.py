#!/usr/bin/env python3
"""Trains the model of examples/demo on the same text in f32, in f32 that rounds otherwise, and in bf16, and compares.

Training amplifies the smallest difference: two f32 runs whose sums are only added in another order drift apart too. So
the distance of bf16 from f32 is printed beside that of the second f32 run, which is what no other type can be expected
to stay below: step by step, and as means over 50 steps, which is the curve one sees in a plot. Exit status 1 where the
curve of bf16 is further than one percent from that of f32, and further than the second f32 run.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIMIT = 0.01
WINDOW = 50


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
    options = parser.parse_args()
    if options.steps < WINDOW:
        parser.error(f"--steps must be at least {WINDOW}, got {options.steps}")

    def run(tool, *arguments):
        subprocess.run([options.tools / tool, *map(str, arguments)], check=True)

    with tempfile.TemporaryDirectory(prefix="bowline-precision-") as name:
        folder = pathlib.Path(name)
        text = subprocess.run(["bible", "-f", "gen1:1-rev22:21"], stdin=subprocess.DEVNULL, capture_output=True,
                              check=True)
        (folder / "text.txt").write_bytes(text.stdout)
        run("bowline-data", "tokenize", folder / "text.txt", "--tokenizer", "bytes", "-o", folder / "text.bin")
        curves = {}
        variants = {
            "f32": [],
            # Rows and columns are summed in another order.
            "f32 rounded otherwise": ["--target-cpu", "x86-64-v3", "--disable-step", "split-column-reductions"],
            "bf16": ["--dtype", "bf16"],
        }
        for index, (name, flags) in enumerate(variants.items()):
            plan, metrics = folder / f"{index}.plan", folder / f"{index}.jsonl"
            run("bowline-compile", ROOT / "examples/demo", "--batch", 4, "--seq", 256, "--lr", "2e-3", "--lr-schedule",
                "cosine", "--warmup-steps", options.steps // 10, "--decay-steps", options.steps, *flags, "-o", plan)
            run("bowline-run", plan, "--data", folder / "text.bin", "--order", "shuffle", "--steps", options.steps,
                "--metrics", metrics, "--quiet")
            curves[name] = losses(metrics)
    wide = curves.pop("f32")
    print(f"f32: loss {wide[0]:.3f} at the start, {means(wide)[-1]:.4f} over the last {WINDOW} of {len(wide)} steps")
    distance = {}
    for name, curve in curves.items():
        step_difference, step = worst(wide, curve)
        distance[name], end = worst(means(wide), means(curve))
        print(f"{name}: {means(curve)[-1]:.4f} over the last {WINDOW}; furthest from f32: {distance[name]:.2%} as a mean "
              f"over {WINDOW} steps (ending with step {end + WINDOW - 1}), {step_difference:.2%} at one step ({step})")
    return 0 if distance["bf16"] <= max(LIMIT, distance["f32 rounded otherwise"]) else 1


if __name__ == "__main__":
    sys.exit(main())
