#!/usr/bin/env python3
"""Measures how much of the gradients' reduction overlap hides, on the demo model with two ranks and a slow link.

The same model is compiled twice for --mesh dp=2, with the step overlap-commands and without it, and both plans train a
few steps in turns, two ranks on one thread each, over a link that `bowline run --link` emulates by sleeping. From the
traces of the last two steps come, for rank 0,

  exposed   the time for which the stream that computes waits for communication, or is itself in it
  hidden    1 - exposed with overlap / exposed without

The link's bandwidth is chosen so that moving all gradients once takes --share of a step without any link, unless
--bandwidth names one. Exit status: 0 when at least --goal is hidden, 2 otherwise.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def exposed_seconds(events, rank=0):
    """By step: seconds in which stream 0 of the rank waits for communication or is in it."""
    steps = {}
    for event in events:
        if event["ph"] != "X" or event["pid"] != rank or event["tid"] != 0 or event["args"]["entry"] != "train_step":
            continue
        steps.setdefault(event["args"]["run"], 0.0)
        if event["cat"] in ("wait", "communication"):
            steps[event["args"]["run"]] += event["dur"] * 1e-6
    return list(steps.values())


def run(command, **options):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    if result.returncode != 0:
        sys.exit(f"bench-overlap: {' '.join(map(str, command))} ended with {result.returncode}:\n{result.stderr}")
    return result.stdout


class Bench:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.tools = options.build_dir / "bin"
        self.plans = {}
        for name, flags in (("overlap", []), ("serial", ["--disable-step", "overlap-commands"])):
            self.plans[name] = folder / f"{name}.plan"
            run([self.tools / "bowline-compile", options.model, "--mode", "train", "--batch", options.batch, "--seq",
                 options.seq, "--mesh", "dp=2", "--threads", "1", *flags, "-o", self.plans[name]])

    def train(self, name, link, trace=None):
        """The steps' milliseconds and losses; trace: the events."""
        metrics = self.folder / "metrics.jsonl"
        command = [self.tools / "bowline-run", self.plans[name], "--data", self.options.data, "--steps",
                   self.options.steps, "--metrics", metrics, "--quiet"]
        if link:
            command += ["--link", link]
        if trace:
            command += ["--trace", trace]
        run(command)
        lines = [json.loads(line) for line in metrics.read_text().splitlines()]
        events = json.loads(trace.read_text())["traceEvents"] if trace else []
        return [line["step_ms"] for line in lines[1:]], [line["loss"] for line in lines], events


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build-dir", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--model", default=str(ROOT / "examples/demo"))
    parser.add_argument("--data", default=str(ROOT / "test/oracle/tokens.bin"))
    parser.add_argument("--batch", type=int, default=8, help="sequences per step, over both ranks")
    parser.add_argument("--seq", type=int, default=256)
    parser.add_argument("--steps", type=int, default=4, help="per run, the first not counted")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each plan, in turns")
    parser.add_argument("--share", type=float, default=0.3, help="of a step that the link takes to move all gradients")
    parser.add_argument("--bandwidth", help="such as 100MB/s, instead of --share")
    parser.add_argument("--goal", type=float, default=0.7)
    parser.add_argument("--keep-traces", type=pathlib.Path, metavar="DIR", help="leave the last traces there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        bench = Bench(options, folder)
        step_ms, _, _ = bench.train("serial", None)
        alone = statistics.median(step_ms)
        model = json.loads((pathlib.Path(options.model) / "config.json").read_text())
        hidden, layers, vocabulary = model["hidden_size"], model["num_hidden_layers"], model["vocab_size"]
        head = hidden // model["num_attention_heads"]
        keys = head * model["num_key_value_heads"]
        parameters = layers * (2 * hidden * (hidden + keys) + 3 * hidden * model["intermediate_size"] + 2 * hidden)
        parameters += hidden + (1 if model["tie_word_embeddings"] else 2) * vocabulary * hidden
        # On a ring of two ranks an all-reduce moves each byte once over each link.
        bandwidth = options.bandwidth or f"{4 * parameters / (options.share * alone * 1e-3) / 1e6:.0f}MB/s"
        link = f"bandwidth={bandwidth},latency=20us"
        print(f"model {options.model}, {parameters} parameters, dp=2 on {os.cpu_count()} processors, other load "
              f"{os.getloadavg()[0]:.1f}; a step takes {alone:.0f} ms without a link; link {link}\n")
        rows, losses = {"serial": [], "overlap": []}, {}
        for _ in range(options.rounds):
            for plan in rows:
                trace = folder / f"{plan}.json"
                step_ms, losses[plan], events = bench.train(plan, link, trace)
                rows[plan].append((statistics.median(step_ms), statistics.median(exposed_seconds(events)) * 1e3))
        if losses["serial"] != losses["overlap"]:
            sys.exit(f"bench-overlap: losses differ: {losses}")
        if options.keep_traces:
            options.keep_traces.mkdir(parents=True, exist_ok=True)
            for plan in rows:
                (options.keep_traces / f"{plan}.json").write_bytes((folder / f"{plan}.json").read_bytes())
        print(f"{'plan':<10}{'step, ms':>12}{'exposed, ms':>14}   (medians of {options.rounds} runs)")
        medians = {plan: [statistics.median(column) for column in zip(*runs)] for plan, runs in rows.items()}
        for plan, (step, exposed) in medians.items():
            print(f"{plan:<10}{step:>12.0f}{exposed:>14.1f}")
        share = 1 - medians["overlap"][1] / medians["serial"][1]
        print(f"\nhidden: {share:.1%} of the communication of a step (goal: {options.goal:.0%}); losses are equal, bit for bit")
        return 0 if share >= options.goal else 2


if __name__ == "__main__":
    sys.exit(main())
