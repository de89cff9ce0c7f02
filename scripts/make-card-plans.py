#!/usr/bin/env python3
"""Makes what the bundle's run-card and run-bench run: plans of its models.json and losses.json, the losses of the latter
on this processor, and plans.json: of each model its parameters and the step that the cost model predicts.

  make-card-plans.py TOOLS BUNDLE [--compiler PROGRAM] [--steps N]

TOOLS       the folder with bowline-compile, bowline-run and bowline-inspect
BUNDLE      the folder with models.json, losses.json and models/; plans/ and data/ are made in it
--compiler  for the plans for cards; default: bowline-compile of TOOLS
--steps     of which losses are kept; default: 20"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

TEST = pathlib.Path(__file__).resolve().parent.parent / "test"
BATCH = "4"
CARD = ["--target", "cuda", "--cuda-arch", "sm_90a"]
# Further plans of models: their flags.
OTHERS = {"gpt2-124m-no-epilogues": ("gpt2-124m", ["--disable-step", "library-epilogues",
                                                   "--disable-step", "library-sums"])}


def call(*command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"make-card-plans: error: {' '.join(map(str, command))}\n{done.stderr}")
    return done.stdout


def without_steps(flags):
    """Those that processors take too."""
    kept = list(flags)
    while "--disable-step" in kept:
        at = kept.index("--disable-step")
        del kept[at:at + 2]
    return kept


def parameters_of(tools, plan):
    description = json.loads(call(tools / "bowline-inspect", plan, "--json"))
    count = 0
    for buffer in description["buffers"]:
        if buffer["kind"] == "Parameter" and buffer["type"].startswith("f32["):
            count += buffer["bytes"] // 4
    return count


def predicted_ms(tools, plan, folder):
    trace = folder / "predicted.json"
    call(tools / "bowline-inspect", plan, "--trace", trace)
    return max(event["ts"] + event["dur"] for event in json.loads(trace.read_text())["traceEvents"]
               if event["ph"] == "X") / 1e3


def make_models(tools, compiler, bundle, folder):
    models = json.loads((bundle / "models.json").read_text())
    plans = {}
    for name, (model, flags) in {**{model: (model, []) for model in models}, **OTHERS}.items():
        if model not in models:
            continue
        plan = bundle / "plans" / f"{name}.plan"
        call(compiler, bundle / "models" / model, "--mode", "train", "--batch", models[model]["batch"], "--seq",
             models[model]["seq"], "--dtype", "bf16", *CARD, *flags, "-o", plan)
        plans[name] = {"parameters": parameters_of(tools, plan), "predicted_ms": predicted_ms(tools, plan, folder)}
    (bundle / "plans.json").write_text(json.dumps(plans, indent=1) + "\n")


def make_losses(tools, compiler, bundle, folder, steps):
    for name, case in json.loads((bundle / "losses.json").read_text()).items():
        model = folder / name
        model.mkdir()
        config = json.loads((TEST / "Models" / case["model"] / "config.json").read_text())
        (model / "config.json").write_text(json.dumps({**config, **case["config"]}))
        flags = ["--mode", "train", "--batch", BATCH, "--seq", case["seq"]]
        call(compiler, model, *flags, *case["flags"], *CARD, "-o", bundle / "plans/losses" / f"{name}.plan")
        own = folder / f"{name}.plan"
        call(tools / "bowline-compile", model, *flags, *without_steps(case["flags"]), "--threads", 1, "-o", own)
        metrics = bundle / "plans/losses" / f"{name}.jsonl"
        metrics.unlink(missing_ok=True)
        call(tools / "bowline-run", own, "--data", TEST / "oracle/tokens.bin", "--steps", steps, "--quiet", "--metrics", metrics)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tools", type=pathlib.Path)
    parser.add_argument("bundle", type=pathlib.Path)
    parser.add_argument("--compiler", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=20)
    args = parser.parse_args()
    compiler = args.compiler or args.tools / "bowline-compile"
    (args.bundle / "plans/losses").mkdir(parents=True, exist_ok=True)
    (args.bundle / "data").mkdir(exist_ok=True)
    shutil.copy(TEST / "oracle/tokens.bin", args.bundle / "data")
    with tempfile.TemporaryDirectory() as folder:
        make_models(args.tools, compiler, args.bundle, pathlib.Path(folder))
        make_losses(args.tools, compiler, args.bundle, pathlib.Path(folder), args.steps)


if __name__ == "__main__":
    main()
