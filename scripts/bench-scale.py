#!/usr/bin/env python3
"""Measures what plans for very large runs cost: GPT-3 of 175B parameters on thousands of ranks.

Compiles the shape of GPT-3 175B (Brown et al., 2020: 96 layers, hidden 12288, 96 heads, vocabulary 50257, 2048 positions)
for training with AdamW, without machine code, and proves the plan with bowline-check: for 12,288 ranks in a pipeline, as
Narayanan et al. (2021) divide such models, for fewer ranks, and for half of the layers. Prints a table. Time is that of
processors, user and system; wall time is beside it, and says more about the machine's other load where the two differ.

Exit status: 0; 1 where a row misses a goal: 30 s to compile, 10 s to check, a file of 50 MB.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CONFIG = {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_embd": 12288, "n_head": 96, "n_layer": 96,
          "n_positions": 2048, "n_ctx": 2048, "vocab_size": 50257, "activation_function": "gelu_new",
          "layer_norm_epsilon": 1e-05, "initializer_range": 0.02, "tie_word_embeddings": True,
          "bos_token_id": 50256, "eos_token_id": 50256}
COMPILE_SECONDS, CHECK_SECONDS, FILE_BYTES = 30, 10, 50e6

# Layers, sequences of a microbatch, microbatches, flags.
CASES = (
    (96, 192, 64, "--mesh pp=8,dp=192,tp=8 --schedule interleaved:3 --zero 1"),
    (96, 192, 64, "--mesh pp=8,dp=192,tp=8 --schedule interleaved:3 --zero 1 --sequence-parallel"),
    (96, 192, 64, "--mesh pp=8,dp=192,tp=8 --schedule 1f1b"),
    (96, 2, 64, "--mesh pp=8,dp=2,tp=8 --schedule interleaved:3 --zero 1"),
    (48, 192, 64, "--mesh pp=8,dp=192,tp=8 --schedule interleaved:3 --zero 1"),
    (96, 1536, 1, "--mesh dp=1536,tp=8 --zero 1"),
    (96, 1536, 1, "--mesh fsdp=1536,tp=8 --zero 3 --sequence-parallel"),
    (48, 1536, 1, "--mesh fsdp=1536,tp=8 --zero 3 --sequence-parallel"),
)


def measure(command):
    """(stdout, wall seconds, processor seconds, peak bytes) of a command that must succeed."""
    start = time.monotonic()
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen([str(part) for part in command], stdout=out, stderr=subprocess.PIPE)
        errors = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        process.stderr.close()
        wall = time.monotonic() - start
        out.seek(0)
        text = out.read().decode()
    if process.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{errors.decode()}{text}")
    return text, wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / "build/release/bin", help="folder with the tools")
    parser.add_argument("--only", default="", help="only cases whose flags contain this text")
    options = parser.parse_args()

    missed = 0
    print("| layers | microbatches | flags | ranks | compile, processor s (wall) | peak memory, MB | plan, MB "
          "| check, processor s (wall) | facts proven |\n|---:|---:|---|---:|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory(prefix="bowline-scale-") as name:
        folder = pathlib.Path(name)
        for layers, sequences, microbatches, flags in CASES:
            if options.only not in flags:
                continue
            model, plan = folder / f"gpt3-{layers}", folder / "x.plan"
            model.mkdir(exist_ok=True)
            (model / "config.json").write_text(json.dumps({**CONFIG, "n_layer": layers}))
            _, compile_wall, compile_time, peak = measure(
                [options.tools / "bowline-compile", model, "--mode", "train", "--batch", sequences * microbatches,
                 "--seq", 2048, "--microbatches", microbatches, "--threads", 1, "--no-codegen", *flags.split(),
                 "-o", plan])
            size = plan.stat().st_size
            report, check_wall, check_time, _ = measure([options.tools / "bowline-check", plan, "--json"])
            report = json.loads(report)
            facts = sum(proof["facts"] for proof in report["proofs"])
            print(f"| {layers} | {microbatches} | `{flags}` | {report['ranks']} | {compile_time:.1f} ({compile_wall:.1f}) "
                  f"| {peak / 1e6:.0f} | {size / 1e6:.2f} | {check_time:.2f} ({check_wall:.2f}) | {facts} |", flush=True)
            missed += compile_time > COMPILE_SECONDS or check_time > CHECK_SECONDS or size > FILE_BYTES
    print(f"\nGoals: compile {COMPILE_SECONDS} s, check {CHECK_SECONDS} s, plan {FILE_BYTES / 1e6:.0f} MB: "
          + (f"missed by {missed}" if missed else "met by all"))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
