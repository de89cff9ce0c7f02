#!/usr/bin/env python3
"""Measures how far a model's predictions are from those in f32 when weights stay in blocks of bits, caches are in bf16 or
int8, or all is computed in bf16: the KL divergence from f32 in nats, its mean and 99.9th percentile over the tokens of a text,
and the share of tokens behind which the likeliest token is the same. The weights are those of the file in all rows, and f32
decodes them.

  measure-divergence.py MODEL.gguf [--text FILE] [--tokens N] [--build-dir DIR]

`cmake --build --preset release --target bowline-compile plan-divergence` builds what it needs. It prints the table of
docs/serving.md."""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
CONTEXT = 256
# Steps of few rows, of tiles of integers, and of more than 48 rows, which AMX multiplies.
STEPS = [8, 32, 64]
WAYS = {
    "weights in blocks": ["--weights-dtype", "as-stored"],
    "weights in blocks, caches in bf16": ["--weights-dtype", "as-stored", "--kv-dtype", "bf16"],
    "weights in blocks, caches in int8": ["--weights-dtype", "as-stored", "--kv-dtype", "int8"],
    "bf16": ["--weights-dtype", "bf16", "--dtype", "bf16"],
}
REFERENCE = ["--weights-dtype", "f32"]


def parse_arguments(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--text", type=pathlib.Path, default=ROOT / "docs/concepts.md")
    parser.add_argument("--tokens", type=int, default=2048)
    parser.add_argument("--build-dir", type=pathlib.Path, default=ROOT / "build/release")
    return parser.parse_args(arguments)


def compile_plan(options, plan, rows, flags):
    subprocess.run([options.build_dir / "bin/bowline-compile", options.model, "--mode", "serve", "--max-context", str(CONTEXT),
                    "--max-batch", str(rows), "--buckets", str(rows), "--kv-blocks", str(CONTEXT // 16), "--with-logits", *flags,
                    "-o", plan],
                   check=True)


def main():
    options = parse_arguments()
    print("| computed in | rows of a step | mean | 99.9th percentile | same likeliest token |\n|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for rows in STEPS:
            compile_plan(options, folder / "reference.plan", rows, REFERENCE)
            for way, flags in WAYS.items():
                compile_plan(options, folder / "other.plan", rows, flags)
                done = subprocess.run(
                    [options.build_dir / "test/bin/plan-divergence", "--reference", folder / "reference.plan",
                     "--reference-weights", options.model, "--plan", folder / "other.plan", "--weights", options.model,
                     "--text", options.text, "--most", str(options.tokens)], stdout=subprocess.PIPE, check=True)
                found = json.loads(done.stdout)
                print(f"| {way} | {rows} | {found['mean']:.2g} | {found['p99_9']:.2g} | {100 * found['same_top']:.2f} % |",
                      flush=True)
    print(f"\n{found['positions']} tokens of {options.text.name}", file=sys.stderr)


if __name__ == "__main__":
    main()
