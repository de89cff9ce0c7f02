#!/usr/bin/env python3
"""Measures Bowline: how long a large model compiles, how fast a small one trains, what the machine would allow.

Prints a table in Markdown and writes it to bench.md, and all numbers to bench.json, in the folder above the tools.

Compile time: Llamas of the shapes of the 7B one, with 8 and with 32 layers, and of the 405B one with its 126, for
training; once without a cache of kernels and once with a full one.

Training: the model of examples/demo, from flat weights, as they are drawn, and from sharp ones (sharp_weights.py). The
baseline is the same plan compiled without what fuses and donates: each elementwise, normalising or reducing operation is
a kernel of its own, which reads and writes memory, and no result takes the place of an operand. Products of matrices and
attention are the same kernels in both. All are run in turns, and medians over the steps of all turns are compared, so
that other load on the machine slows down all.

Bounds: the step's floating-point operations at the speed of the fastest matrix product measured beside it, and its
least memory traffic (operands read once, results written once, by each kernel) at the speed of a large copy. A step
takes at least the longer of the two.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
import sharp_weights  # pylint: disable=wrong-import-position

SEVEN_B = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "hidden_size": 4096,
    "intermediate_size": 11008, "num_attention_heads": 32, "num_key_value_heads": 32, "vocab_size": 32000,
    "max_position_embeddings": 2048, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "initializer_range": 0.02,
    "tie_word_embeddings": False, "attention_bias": False, "mlp_bias": False,
}
LARGEST = dict(SEVEN_B, hidden_size=16384, intermediate_size=53248, num_attention_heads=128, num_key_value_heads=8,
               vocab_size=128256)
# name, configuration, layers, seconds that a compilation may take
COMPILATIONS = [("7B", SEVEN_B, 8, None), ("7B", SEVEN_B, 32, 10), ("405B", LARGEST, 126, 30)]
NAIVE = [flag for step in ("merge-fusions", "fuse-epilogues", "tile-loss", "repeat-activations",
                           "split-column-reductions", "donate-buffers") for flag in ("--disable-step", step)]
DEMO_BATCH, DEMO_SEQ = 8, 256


class Tools:
    def __init__(self, folder):
        self.folder = folder.resolve()

    def run(self, tool, *arguments):
        """(standard output and error, seconds of wall clock, seconds of processor time)"""
        before, start = os.times(), time.perf_counter()
        process = subprocess.run([self.folder / tool, *map(str, arguments)], stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
        wall, after = time.perf_counter() - start, os.times()
        if process.returncode != 0:
            sys.exit(f"bench: error: {tool} {' '.join(map(str, arguments))} ended with exit code "
                     f"{process.returncode}:\n{process.stdout}")
        cpu = after.children_user + after.children_system - before.children_user - before.children_system
        return process.stdout, wall, cpu


def load():
    with open("/proc/loadavg", encoding="ascii") as file:
        return float(file.read().split()[0])


def machine():
    """The processors by their instruction sets."""
    text = pathlib.Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    flags = set(re.search(r"^flags\s*:(.*)$", text, re.M).group(1).split())
    wanted = ["avx2", "fma", "avx512f", "avx512_vnni", "avx512_bf16", "amx_tile"]
    memory = int(re.search(r"MemTotal:\s*(\d+)", pathlib.Path("/proc/meminfo").read_text(encoding="ascii")).group(1))
    return {"processors": os.cpu_count(), "features": [f for f in wanted if f in flags],
            "memory_gib": round(memory / 2**20, 1)}


def passes(timing):
    """Seconds by pass of a --timing report, passes that run several times added up."""
    result = {}
    for seconds, name in re.findall(r"^ {4}(\d+\.\d+) \( *[\d.]+%\) +(\S.*)$", timing, re.M):
        name = name.replace("(anonymous namespace)::", "")
        # Analyses are parts of passes, and pipelines sums of them.
        if name != "Total" and not name.startswith("(A) ") and not name.endswith(" Pipeline"):
            result[name] = result.get(name, 0) + float(seconds)
    return dict(sorted(result.items(), key=lambda item: -item[1]))


def measure_compilation(tools, scratch, shape, rounds):
    name, config, layers, target = shape
    model, cache = scratch / f"{name}-{layers}", scratch / f"cache-{name}-{layers}"
    model.mkdir()
    (model / "config.json").write_text(json.dumps(dict(config, num_hidden_layers=layers)))
    plan = scratch / f"{name}-{layers}.plan"
    command = ["bowline-compile", model, "--mode", "train", "--batch", 1, "--seq", 2048, "--timing", "-o", plan]
    tools.run(*command, "--kernel-cache", cache)
    walls, cpus, cached, timing = [], [], [], ""
    for _ in range(rounds):
        timing, wall, cpu = tools.run(*command, "--kernel-cache", "off")
        walls.append(wall)
        cpus.append(cpu)
        cached.append(tools.run(*command, "--kernel-cache", cache)[1])
    inside = json.loads(tools.run("bowline-inspect", plan, "--json")[0])
    check, check_wall, _ = tools.run("bowline-check", plan)
    if check.splitlines()[-1] != "sound":
        sys.exit(f"bench: error: bowline-check did not find {plan} sound:\n{check}")
    origins = [kernel["origin"] for kernel in inside["kernels"]]
    return {"shape": name, "layers": layers, "target_s": target, "wall_s": statistics.median(walls),
            "wall_all_s": walls, "cached_wall_s": statistics.median(cached),
            "cpu_s": statistics.median(cpus), "check_s": check_wall, "plan_bytes": plan.stat().st_size,
            "arena_bytes": inside["header"]["arena_bytes"], "generated_kernels": origins.count("Generated"),
            "registered_kernels": origins.count("Registered"),
            "commands": {entry["name"]: entry["commands"] for entry in inside["entries"]}, "passes_s": passes(timing)}


def write_tokens(path, count):
    """An llm.c file. Which ids it holds does not matter for time; these are all bytes in turn."""
    header = struct.pack("<256i", 20240520, 1, count, *[0] * 253)
    path.write_bytes(header + struct.pack(f"<{count}H", *(i * 131 % 256 for i in range(count))))


def make_weights(tools, plan, tokens, scratch):
    """Folders of flat and of sharp weights: those of a plan after its first step, and the same with sharp attention."""
    tools.run("bowline-run", plan, "--data", tokens, "--steps", 1, "--save", scratch / "saved", "--quiet")
    flat, = (scratch / "saved").glob("step-*")
    sharp = scratch / "sharp"
    shutil.copytree(flat, sharp)
    sharp_weights.sharpen(sharp / "model.safetensors")
    return {"flat": flat, "sharp": sharp}


def measure_training(tools, scratch, rounds, steps):
    """Numbers by variant, or by (variant, weights) as "bowline, sharp" where weights are not flat."""
    tokens = scratch / "tokens.bin"
    write_tokens(tokens, 4 * DEMO_BATCH * DEMO_SEQ + 1)
    variants = {"bowline": [], "baseline": NAIVE}
    result = {}
    for name, options in variants.items():
        report, _, _ = tools.run("bowline-compile", ROOT / "examples/demo", "--mode", "train", "--batch", DEMO_BATCH,
                                 "--seq", DEMO_SEQ, "--report", *options, "-o", scratch / f"{name}.plan")
        commands, gflop, gbytes = re.search(r"entry train_step: (\d+) commands.* ([\d.e+]+) GFLOP, ([\d.e+]+) GB",
                                            report).groups()
        inside = json.loads(tools.run("bowline-inspect", scratch / f"{name}.plan", "--json")[0])
        result[name] = {"options": options, "commands": int(commands), "gflop": float(gflop), "gbytes": float(gbytes),
                        "arena_bytes": inside["header"]["arena_bytes"], "step_ms_all": []}
        result[f"{name}, sharp"] = dict(result[name], step_ms_all=[])
    weights = make_weights(tools, scratch / "bowline.plan", tokens, scratch)
    for turn in range(rounds):
        for key in list(result)[::1 if turn % 2 == 0 else -1]:
            name, _, sharp = key.partition(", ")
            metrics = scratch / "metrics.jsonl"
            metrics.unlink(missing_ok=True)
            tools.run("bowline-run", scratch / f"{name}.plan", "--data", tokens, "--steps", steps + 1, "--weights",
                      weights[sharp or "flat"], "--metrics", metrics, "--quiet", "--allow-non-finite")
            # The first step touches memory for the first time.
            lines = metrics.read_text(encoding="utf-8").splitlines()[1:]
            result[key]["step_ms_all"] += [json.loads(line)["step_ms"] for line in lines]
    for numbers in result.values():
        numbers["step_ms"] = statistics.median(numbers["step_ms_all"])
        numbers["fastest_step_ms"] = min(numbers["step_ms_all"])
        numbers["tokens_per_s"] = DEMO_BATCH * DEMO_SEQ / numbers["step_ms"] * 1e3
    return result


def measure_machine(tools):
    """The fastest matrix product and the fastest large copy, by all processors."""
    threads = min(os.cpu_count(), 2)  # what the benchmark has
    output, _, _ = tools.run("bowline-kernel-bench", "--benchmark_format=json", "--benchmark_min_time=0.2",
                             f"--benchmark_filter=(matmul_bowline/(2048|384)x|copy_48MiB).*threads:{threads}/")
    rates = {b["name"]: b for b in json.loads(output[output.index("{"):])["benchmarks"]}
    return {"threads": threads, "gflop_per_s": max(b.get("GFLOP/s", 0) for b in rates.values()),
            "gbytes_per_s": max(b["GB/s"] for name, b in rates.items() if name.startswith("copy"))}


def measure_allocations(tests):
    """The result of the test that counts allocations: it asserts 0 over 20 steps of two data orders with 1 and 2 threads."""
    test = tests / "train-allocation-test"
    if not test.exists():
        return None
    process = subprocess.run([test], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return 0 if process.returncode == 0 and "[  PASSED  ] 1 test" in process.stdout else "the test fails"


def markdown(result):
    rows = ["| measured | value |", "|---|---|"]
    add = lambda name, value: rows.append(f"| {name} | {value} |")
    for c in result["compile"]:
        parts = ", ".join(f"{name} {seconds:.2f}" for name, seconds in list(c["passes_s"].items())[:5])
        what = f"{c['shape']} shape, {c['layers']} layers"
        target = f" (target: {c['target_s']} s)" if c["target_s"] else ""
        add(f"{what}: compile", f"{c['wall_s']:.2f} s wall, {c['cpu_s']:.2f} s processor; {c['cached_wall_s']:.2f} s "
                                f"with all kernels in the cache{target}")
        add(f"{what}: longest passes, s", parts)
        add(f"{what}: plan", f"{c['plan_bytes'] / 2**20:.2f} MiB, {c['generated_kernels']} generated and "
                             f"{c['registered_kernels']} registered kernels, "
                             f"{c['commands']['train_step']} commands a step")
        add(f"{what}: bowline-check", f"{c['check_s']:.2f} s")
    ours, naive, m = result["training"]["bowline"], result["training"]["baseline"], result["machine_rates"]
    sharp = result["training"]["bowline, sharp"]
    for name, t in (("demo model", ours), ("demo model, baseline", naive)):
        add(f"{name}: step", f"{t['step_ms']:.0f} ms median, {t['fastest_step_ms']:.0f} ms fastest of "
                             f"{len(t['step_ms_all'])}; {t['tokens_per_s']:.0f} tokens/s")
        add(f"{name}: work", f"{t['commands']} commands, {t['gflop']:.1f} GFLOP, {t['gbytes']:.2f} GB least traffic, "
                             f"arena {t['arena_bytes'] / 2**20:.1f} MiB")
    add("speed over the baseline", f"{naive['step_ms'] / ours['step_ms']:.2f} by medians, "
                                   f"{naive['fastest_step_ms'] / ours['fastest_step_ms']:.2f} by fastest steps")
    add("demo model from sharp weights: step", f"{sharp['step_ms']:.0f} ms median, {sharp['fastest_step_ms']:.0f} ms "
                                               f"fastest; speed over that of flat weights "
                                               f"{ours['step_ms'] / sharp['step_ms']:.2f}")
    arithmetic, traffic = ours["gflop"] / m["gflop_per_s"] * 1e3, ours["gbytes"] / m["gbytes_per_s"] * 1e3
    add("machine, beside it", f"{m['gflop_per_s']:.0f} GFLOP/s product of matrices, {m['gbytes_per_s']:.1f} GB/s copy, "
                              f"{m['threads']} threads")
    add("bound of a step", f"{arithmetic:.0f} ms by arithmetic, {traffic:.0f} ms by memory; the fastest step is at "
                           f"{max(arithmetic, traffic) / ours['fastest_step_ms'] * 100:.0f}% of the bound's speed")
    allocations = result["allocations_per_step"]
    add("heap allocations per step", "not counted (the tests are not built)" if allocations is None else allocations)
    cpu = result["machine"]
    add("machine", f"{cpu['processors']} processors with {', '.join(cpu['features'])}; {cpu['memory_gib']} GiB")
    add("load of the machine", f"{result['load_before']} before, {result['load_after']} after (1 minute; idle is 0)")
    return "\n".join(rows) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / "build/release/bin", help="folder with the tools")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each measurement")
    parser.add_argument("--steps", type=int, default=8, help="training steps measured in a turn")
    arguments = parser.parse_args()
    tools = Tools(arguments.tools)
    result = {"machine": machine(), "load_before": load()}
    with tempfile.TemporaryDirectory(prefix="bowline-bench-") as folder:
        scratch = pathlib.Path(folder)
        result["compile"] = [measure_compilation(tools, scratch, shape, arguments.rounds) for shape in COMPILATIONS]
        result["training"] = measure_training(tools, scratch, arguments.rounds, arguments.steps)
    result["machine_rates"] = measure_machine(tools)
    result["allocations_per_step"] = measure_allocations(tools.folder.parent / "test/bin")
    result["load_after"] = load()
    (tools.folder.parent / "bench.json").write_text(json.dumps(result, indent=1) + "\n")
    (tools.folder.parent / "bench.md").write_text(markdown(result))
    print(markdown(result), end="")


if __name__ == "__main__":
    main()
