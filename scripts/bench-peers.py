#!/usr/bin/env python3
"""Measures training with Bowline beside PyTorch (eager and compiled) and JAX: speed, memory, time to the first step.

Prints two tables in Markdown and writes them to bench-peers.md, and all numbers to bench-peers.json, in the folder
above the tools. docs/benchmarks.md says what is measured. PyTorch and JAX are installed into build/peers on first use.

Every candidate trains the same model from the same weights, flat and sharp ones (sharp_weights.py), on the same tokens, as
a process of its own on the same processors, cold: caches are in a fresh folder. Candidates take turns. The time of a step is that between two metrics
lines as this program receives them. Losses of the first steps are compared; exit status 2 says that some differ or that
a candidate failed.
"""

import argparse
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
from peers import cases, environment, processes, results  # pylint: disable=wrong-import-position
import sharp_weights  # pylint: disable=wrong-import-position

PEERS = ROOT / "scripts/peers"
REFUSED = re.compile(r"--dtype: .* not in ")


class Refused(Exception):
    """Bowline does not have the element type."""


class Failed(Exception):
    """A candidate's process failed; the message is for the table."""


def failure(title, run):
    last = next((line for line in reversed(run.tail.splitlines()) if line.strip()), "no message")
    reason = "ran past the time limit" if run.exit_code == 124 else f"exit code {run.exit_code}: {last}"
    return Failed(f"failed: {title}, {reason}".replace("|", "/"))


class Bench:
    def __init__(self, arguments, python, scratch):
        self.arguments, self.python, self.scratch = arguments, python, scratch
        self.tools = arguments.tools.resolve()
        self.processors = sorted(os.sched_getaffinity(0))[:arguments.threads]
        self.lines = arguments.warmup + arguments.steps
        self.peaks = {}

    def process(self, title, command, metrics_option=None, more_variables=None):
        """Runs a candidate's process cold: home and caches are new and empty."""
        home = self.scratch / "home"
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir()
        caches = {name: str(home / name.lower()) for name in
                  ("XDG_CACHE_HOME", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "TMPDIR")}
        for folder in caches.values():
            pathlib.Path(folder).mkdir()
        variables = dict(os.environ, HOME=str(home), CUDA_VISIBLE_DEVICES="", JAX_PLATFORMS="cpu",
                         JAX_ENABLE_COMPILATION_CACHE="false", PYTHONDONTWRITEBYTECODE="1",
                         OMP_NUM_THREADS=str(self.arguments.threads), **caches, **(more_variables or {}))
        run = processes.run(command, self.scratch / "log", variables, self.processors, self.arguments.time_limit,
                            metrics_option)
        if run.exit_code != 0:
            if title == "bowline-compile" and REFUSED.search(run.tail):
                raise Refused
            raise failure(title, run)
        if metrics_option and len(run.lines) != self.lines:
            raise Failed(f"failed: {title} wrote {len(run.lines)} metrics lines instead of {self.lines}")
        return run

    def prepare(self, model, weights, folder):
        """Weights and tokens of a model."""
        folder.mkdir(exist_ok=True)
        (folder / "config.json").write_text(json.dumps(model.config))
        command = [self.python, PEERS / "make_inputs.py", "--model", folder, "--tokens", folder / "tokens.npy",
                   "--count", cases.BATCHES * model.batch * model.seq + 1]
        subprocess.run(list(map(str, command)), check=True)
        if weights == "sharp":
            sharp_weights.sharpen(folder / "model.safetensors")

    def bowline(self, model, dtype, folder):
        plan = self.scratch / "model.plan"
        options = [x for name, value in cases.OPTIMIZER.items() for x in (f"--{name}", value)]
        compiled = self.process("bowline-compile",
                                [self.tools / "bowline-compile", folder, "--mode", "train", "--batch", model.batch,
                                 "--seq", model.seq, "--dtype", dtype, "--threads", self.arguments.threads, *options,
                                 *self.arguments.compile_flags, "--recompute", model.recompute, "--report", "-o", plan])
        gflop = re.search(r"entry train_step: .* ([\d.e+]+) GFLOP", compiled.tail)
        if not gflop:
            raise Failed("failed: bowline-compile --report says no GFLOP of train_step")
        trained = self.process("bowline-run",
                               [self.tools / "bowline-run", plan, "--data", folder / "tokens.npy", "--weights", folder,
                                "--steps", self.lines, "--quiet"], "--metrics")
        numbers = self.numbers(trained)
        numbers.update(start_s=compiled.wall_s, gflop=float(gflop.group(1)), compile_peak_bytes=compiled.peak_bytes,
                       peak_bytes=max(compiled.peak_bytes, trained.peak_bytes),
                       tree_bytes=max(compiled.tree_bytes, trained.tree_bytes))
        return numbers

    def peer(self, name, model, dtype, folder):
        program = ["run_jax.py"] if name == "jax" else ["run_torch.py", "--mode", name]
        options = [x for option, value in cases.OPTIMIZER.items() for x in (f"--{option}", value)]
        return self.numbers(self.process(cases.CANDIDATES[name],
                                         [self.python, PEERS / program[0], *program[1:], "--model", folder, "--data",
                                          folder / "tokens.npy", "--batch", model.batch, "--seq", model.seq, "--dtype",
                                          dtype, "--steps", self.lines, "--threads", self.arguments.threads, *options],
                                         "--metrics", {} if name == "jax" else cases.TORCH_ENVIRONMENT))

    @staticmethod
    def numbers(run):
        return {"start_s": 0.0, "lines": run.lines, "peak_bytes": run.peak_bytes, "tree_bytes": run.tree_bytes,
                "children": run.children, "others_cpus": run.others_cpus, "load": run.load}

    def measure_peak(self):
        """The most that the processors were seen to multiply and add, by element type; other load can only lower it."""
        probe = self.scratch / "fma_peak"
        if not probe.exists():
            subprocess.run(["clang++-22", "-std=c++20", "-O3", "-pthread", PEERS / "fma_peak.cc", "-o", probe],
                           check=True)
        output = subprocess.run([probe, str(self.arguments.threads)], check=True, capture_output=True, text=True).stdout
        for dtype, rate in json.loads(output).items():
            self.peaks[dtype] = max(rate, self.peaks.get(dtype, 0))

    def measure(self, model, weights, dtype, folder):
        """A row: candidates in turns, in the opposite order every other round."""
        runs, failed, broken = {name: [] for name in self.arguments.peers}, {}, False
        for turn in range(self.arguments.rounds):
            self.measure_peak()
            for name in self.arguments.peers[::1 if turn % 2 == 0 else -1]:
                if name in failed:
                    continue
                print(f"bench-peers: {model.title}, {weights}, {dtype}, round {turn + 1}: {cases.CANDIDATES[name]}",
                      file=sys.stderr)
                try:
                    runs[name].append(self.bowline(model, dtype, folder) if name == "bowline"
                                      else self.peer(name, model, dtype, folder))
                except Refused:
                    failed[name] = f"has no --dtype {dtype}"
                except Failed as error:
                    failed[name], broken = str(error), True
        row = {"title": model.title, "weights": weights, "dtype": dtype, "failed": failed, "broken": broken,
               "peak_gflop_per_s": self.peaks.get(dtype), "measured": {}}
        for name, all_runs in runs.items():
            if name not in failed:
                row["measured"][name] = results.summarize(all_runs, model.batch * model.seq, self.arguments.warmup)
                if name == "bowline":
                    row["measured"][name]["gflop"] = all_runs[0]["gflop"]
        results.compare(row)
        return row


def names(known):
    """An argument's type: some of the known names, separated by commas, in the order of `known`."""
    def parse(text):
        chosen = text.split(",")
        unknown = [name for name in chosen if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"{', '.join(map(repr, unknown))} is not among {','.join(known)}")
        return [name for name in known if name in chosen]
    return parse


def positive(text):
    if not re.fullmatch(r"[1-9][0-9]*", text):
        raise argparse.ArgumentTypeError(f"'{text}' must be a number from 1 on")
    return int(text)


def parse_arguments(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    models, available = list(cases.models()), len(os.sched_getaffinity(0))
    parser.add_argument("--tools", type=pathlib.Path, default=ROOT / "build/release/bin", help="folder with the tools")
    parser.add_argument("--environment", type=pathlib.Path, default=ROOT / "build/peers", help="Python environment to "
                        "install PyTorch and JAX into, or that has them")
    parser.add_argument("--models", type=names(models), default=models, help=f"of {','.join(models)}")
    parser.add_argument("--weights", type=names(cases.WEIGHTS), default=list(cases.WEIGHTS),
                        help=f"of {','.join(cases.WEIGHTS)}")
    parser.add_argument("--dtypes", type=names(cases.DTYPES), default=list(cases.DTYPES),
                        help=f"of {','.join(cases.DTYPES)}")
    parser.add_argument("--peers", type=names(list(cases.CANDIDATES)), default=list(cases.CANDIDATES),
                        help=f"of {','.join(cases.CANDIDATES)}")
    parser.add_argument("--rounds", type=positive, default=3, help="turns of each candidate")
    parser.add_argument("--warmup", type=positive, default=2, help="steps at the start of a turn that are not timed")
    parser.add_argument("--steps", type=positive, default=8, help="steps that are timed in a turn")
    parser.add_argument("--threads", type=positive, default=available, help="threads and processors of each candidate")
    parser.add_argument("--compile-flags", type=shlex.split, default=[], metavar="FLAGS",
                        help="what bowline-compile is told beside, such as '--f32-products bf16x6'")
    parser.add_argument("--time-limit", type=positive, default=3600, help="seconds until a process is given up")
    result = parser.parse_args(arguments)
    if result.threads > available:
        parser.error(f"argument --threads: {result.threads} is more than the {available} processors there are")
    return result


def main():
    arguments = parse_arguments()
    for tool in ("bowline-compile", "bowline-run"):
        if not (arguments.tools / tool).exists():
            sys.exit(f"bench-peers: error: {arguments.tools / tool} does not exist; run 'make build', or give --tools")
    # Not resolved: the interpreter's place says which environment it is of.
    python = environment.prepare(arguments.environment.absolute())
    # A candidate is in a session of its own, so that only this program can end it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("bench-peers: error: terminated"))
    out = arguments.tools.resolve().parent
    result = {"settings": {key: getattr(arguments, key)
                           for key in ("rounds", "warmup", "steps", "threads", "compile_flags")},
              "optimizer": cases.OPTIMIZER, "versions": environment.wanted(), "rows": []}
    with tempfile.TemporaryDirectory(prefix="bench-peers-", dir=out) as folder:
        scratch = pathlib.Path(folder)
        bench = Bench(arguments, python, scratch)
        for name in arguments.models:
            model = cases.models()[name]
            for weights in arguments.weights:
                bench.prepare(model, weights, scratch / name)
                for dtype in arguments.dtypes:
                    result["rows"].append(bench.measure(model, weights, dtype, scratch / name))
                    # After every row, because the whole takes long and may be interrupted.
                    (out / "bench-peers.json").write_text(json.dumps(result, indent=1) + "\n")
                    (out / "bench-peers.md").write_text(results.markdown(result))
                shutil.rmtree(scratch / name)
    print(results.markdown(result), end="")
    sys.exit(0 if results.all_well(result) else 2)


if __name__ == "__main__":
    main()
