#!/usr/bin/env python3
"""Trains the model of examples/demo twice on the same text, in f32 and in bf16, and compares the losses.

Prints how far the two curves are from each other: step by step, and as means over 20 steps, which is what one sees in a
plot. Exit status 1 where any step differs by more than one percent.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIMIT = 0.01
WINDOW = 20


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
    parser.add_argument("--steps", type=int, default=500, help="training steps, at least 20")
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
        for dtype in ("f32", "bf16"):
            run("bowline-compile", ROOT / "examples/demo", "--batch", 4, "--seq", 256, "--lr", "2e-3", "--lr-schedule",
                "cosine", "--warmup-steps", options.steps // 10, "--decay-steps", options.steps, "--dtype", dtype,
                "-o", folder / f"{dtype}.plan")
            run("bowline-run", folder / f"{dtype}.plan", "--data", folder / "text.bin", "--order", "shuffle", "--steps",
                options.steps, "--metrics", folder / f"{dtype}.jsonl", "--quiet")
            curves[dtype] = losses(folder / f"{dtype}.jsonl")
    wide, narrow = curves["f32"], curves["bf16"]
    step_difference, step = worst(wide, narrow)
    mean_difference, end = worst(means(wide), means(narrow))
    print(f"loss: {wide[0]:.3f} at the start, f32 {means(wide)[-1]:.4f} and bf16 {means(narrow)[-1]:.4f} over the last "
          f"{WINDOW} of {len(wide)} steps")
    print(f"largest difference of a step: {step_difference:.3%} (step {step})")
    print(f"largest difference of a mean over {WINDOW} steps: {mean_difference:.3%} "
          f"(ending with step {end + WINDOW - 1})")
    return 0 if step_difference <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
