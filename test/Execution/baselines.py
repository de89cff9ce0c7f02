#!/usr/bin/env python3
"""Baselines: what the test models' plans are, and to the bit what they compute, as test/Baselines recorded it.

    baselines.py --tools FOLDER [NAME...]    records all of them anew, or those with these names; see `make baselines`

A record has two parts. `plan` is what should not change unnoticed and is the same on all machines: bytes of the arenas,
commands of each kind, how many kernels of each name there are and how often they are launched. `results` are losses,
norms of gradients and digests of the checkpoint, for each level of processors that this machine can be taken for
(BOWLINE_TARGET_CPU): bits follow from it. Bytes of code are not recorded, and no times, which `make bench` measures.
"""

import argparse
import collections
import hashlib
import json
import pathlib
import re
import sys
import tempfile

import tools

FOLDER = tools.TEST_DIR / "Baselines"
STEPS = 5

SHAPE = ["--batch", "4", "--seq", "16"]
# Workspace and packed weights, and so arenas, are answers of the level: plans are recorded for this one on all machines.
LEVEL = "x86-64-v4+avx512bf16"
# Each model, each kind of strategy, each schedule, both types. Names are those of the files.
RUNS = {
    "gpt2-tiny": ("gpt2-tiny", []),
    "gpt2-tiny-bf16-dp2": ("gpt2-tiny", ["--dtype", "bf16", "--mesh", "dp=2"]),
    "gpt2-tiny-recompute": ("gpt2-tiny", ["--recompute", "full", "--microbatches", "2"]),
    "llama-deep-dualpipe": ("llama-deep", ["--mesh", "pp=2", "--schedule", "dualpipe_v", "--microbatches", "4"]),
    "llama-deep-interleaved": ("llama-deep", ["--mesh", "pp=2", "--schedule", "interleaved:2", "--microbatches", "4"]),
    "llama-tied-pp3-gpipe": ("llama-tied", ["--mesh", "pp=3", "--schedule", "gpipe", "--microbatches", "4"]),
    "llama-tiny": ("llama-tiny", []),
    "llama-tiny-dp2-tp2-zero2": ("llama-tiny", ["--mesh", "dp=2,tp=2", "--zero", "2", "--microbatches", "2"]),
    "llama-tiny-sgd-cosine": ("llama-tiny", ["--optimizer", "sgd", "--lr-schedule", "cosine", "--warmup-steps", "2",
                                             "--decay-steps", "4", "--microbatches", "2"]),
    "llama-tiny-zero-bubble": ("llama-tiny", ["--mesh", "pp=2,dp=2", "--zero", "1", "--schedule", "zb_h2",
                                              "--microbatches", "2"]),
    "mistral-tiny-bf16": ("mistral-tiny", ["--dtype", "bf16"]),
    "mistral-tiny-fsdp2": ("mistral-tiny", ["--mesh", "fsdp=2", "--zero", "3", "--prefetch", "2"]),
    "qwen2-tiny-chunks": ("qwen2-tiny", ["--mesh", "tp=2", "--overlap-chunks", "2"]),
    "qwen3-tiny-1f1b": ("qwen3-tiny", ["--mesh", "pp=2,tp=2", "--microbatches", "2"]),
    "qwen3-tiny-sequence": ("qwen3-tiny", ["--mesh", "tp=2", "--sequence-parallel", "--dtype", "bf16"]),
}


def model_of(name, folder):
    """A test model; llama-deep is llama-tiny with the layers that two stages on each of two ranks take."""
    if name != "llama-deep":
        return tools.MODELS / name
    config = json.loads((tools.MODELS / "llama-tiny/config.json").read_text())
    (folder / name).mkdir()
    (folder / name / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 4}))
    return folder / name


def commands_of(text):
    """Commands of each kind, by role and program, of a plan as text."""
    counts, role, program = {}, "", None
    for line in text.splitlines():
        if match := re.match(r"  module @(\S+)", line):
            role = f"{match[1]} "
        elif match := re.match(r"\s+plan\.program @(\S+)", line):
            program = counts.setdefault(f"{role}{match[1]}", collections.Counter())
        elif re.match(r"\s+plan\.entry ", line):
            program = None
        elif program is not None and (match := re.match(r"\s+plan\.(?!segment)(\w+)", line)):
            program[match[1]] += 1
    return {name: ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())) for name, kinds in counts.items()}


def kernels_of(described):
    """Kernels by name: how many, which differ in shapes, and how many commands launch them."""
    kernels = {}
    for kernel in described["kernels"]:
        # Generated ones are numbered.
        name = re.sub(r"\.\d+$", "", kernel["name"])
        counts = kernels.setdefault(f"{kernel['origin'].lower()} {name}", [0, 0])
        counts[0] += 1
        counts[1] += kernel["launches"]
    return {name: f"{count} launched by {launches}" for name, (count, launches) in kernels.items()}


def plan_of(plan):
    described = json.loads(tools.succeed("bowline-inspect", plan, "--json"))
    text = tools.succeed("bowline-translate", "--plan-to-mlir", plan).decode()
    return {"arena_bytes": [int(size) for size in re.findall(r"plan\.arena_bytes = (\d+)", text)],
            "commands": commands_of(text), "kernels": kernels_of(described)}


def digests_of(checkpoint):
    """Of each file of tensors: names, types, shapes and bytes, in the order of names."""
    digests = {}
    for path in sorted(checkpoint.glob("*.safetensors")):
        content, digest = path.read_bytes(), hashlib.sha256()
        size = int.from_bytes(content[:8], "little")
        header, data = json.loads(content[8:8 + size]), content[8 + size:]
        for name, tensor in sorted(header.items()):
            if name != "__metadata__":
                begin, end = tensor["data_offsets"]
                digest.update(f"{name} {tensor['dtype']} {tensor['shape']}\n".encode() + data[begin:end])
        digests[path.name] = digest.hexdigest()
    return digests


def levels_of_machine():
    return [level for level in tools.LEVELS if tools.machine_has(level)]


def results_of(level, command, folder):
    """Bits are those of the code that is generated for the level, and of the kernels that a machine of it runs."""
    folder.mkdir()
    plan, metrics, checkpoints = folder / "x.plan", folder / "metrics.jsonl", folder / "checkpoints"
    machine = tools.as_level(level)
    tools.succeed(*command, "-o", plan, env=machine)
    tools.succeed("bowline-run", plan, "--data", tools.TOKENS, "--steps", STEPS, "--order", "shuffle", "--eval-data",
                  tools.TOKENS, "--eval-batches", 2, "--save", checkpoints, "--metrics", metrics, "--quiet", env=machine)
    lines = tools.metrics_of(metrics)
    saved, = checkpoints.glob("step-*")
    return {"metrics": [" ".join(f"{key} {value}" for key, value in line.items()) for line in lines],
            "checkpoint": digests_of(saved)}


def measure(name, levels):
    """The record of a run, with its results at these levels."""
    model, flags = RUNS[name]
    flags = [*SHAPE, *flags]
    with tempfile.TemporaryDirectory(prefix="bowline-baseline-") as path:
        folder = pathlib.Path(path)
        plan = folder / "recorded.plan"
        command = ["bowline-compile", model_of(model, folder), *flags, *tools.ONE_THREAD]
        tools.succeed(*command, "--target-cpu", LEVEL, "-o", plan)
        return {"model": model, "flags": " ".join(flags), "plan": plan_of(plan),
                "results": {level: results_of(level, command, folder / level) for level in levels}}


def path_of(name):
    return FOLDER / f"{name}.json"


def text_of(record):
    return json.dumps(record, indent=1, sort_keys=True) + "\n"


def recorded(name):
    return json.loads(path_of(name).read_text()) if path_of(name).exists() else None


def merged(old, new):
    """`new`, with the results of other levels where nothing says that they have changed too."""
    if not old or old["flags"] != new["flags"]:
        return new
    both = old["results"].keys() & new["results"].keys()
    stay = all(old["results"][level] == new["results"][level] for level in both) if both else old["plan"] == new["plan"]
    return {**new, "results": {**old["results"], **new["results"]}} if stay else new


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", required=True, type=pathlib.Path, help="folder of the tools, build/release/bin")
    parser.add_argument("names", nargs="*", metavar="NAME", help="runs to record; all of them where none is named")
    options = parser.parse_args()
    for name in options.names:
        if name not in RUNS:
            sys.exit(f"baselines: there is no run '{name}'; there are {', '.join(RUNS)}")
    tools.use(options.tools)
    FOLDER.mkdir(exist_ok=True)
    for name in options.names or RUNS:
        old = recorded(name)
        record = merged(old, measure(name, levels_of_machine()))
        path_of(name).write_text(text_of(record))
        print(f"{name}: {'as before' if record == old else 'recorded'}", flush=True)
    if not options.names:
        for path in FOLDER.glob("*.json"):
            if path.stem not in RUNS:
                path.unlink()


if __name__ == "__main__":
    main()
