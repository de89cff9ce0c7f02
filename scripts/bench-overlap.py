#!/usr/bin/env python3
"""Measures how much of the communication overlap hides, on the demo model with two ranks and a slow link.

Gradients. The same model is compiled twice for --mesh dp=2, with the step overlap-commands and without it, and both plans train a
few steps in turns, two ranks on one thread each, over a link that `bowline run --link` emulates by sleeping. From the
traces of the last two steps come, for rank 0,

  exposed   the time for which the stream that computes waits for communication, or is itself in it
  hidden    1 - exposed with overlap / exposed without

The link's bandwidth is chosen so that moving all gradients once takes --share of a step without any link, unless
--bandwidth names one.

Pipeline. The model is compiled for --mesh pp=2 with each of --schedules, and the plan trains in turns over that link and
over one that costs nothing. A rank sends or receives what goes between the stages twice per microbatch,

  transfers the time that all of it takes on the link, one after the other
  hidden    1 - (step with the link - step without) / transfers
  can hide  the same of a simulated step, in which every action of the schedule starts as soon as it can, with the times
            that actions take without the link: whatever it becomes longer by, the schedule leaves nothing to do meanwhile

  goal      can hide, less --slack: two processors that other programs use too never start everything at once

Exit status: 0 when at least --goal is hidden of the gradients, and by every schedule its goal, 2 otherwise.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent

SCHEDULES = ("gpipe", "1f1b", "interleaved:2", "breadth_first:2", "zb_h1", "zb_h2", "zb_v", "dualpipe_v")


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


@dataclasses.dataclass
class Gradients:
    """Milliseconds of a step and of its exposed communication, without overlap and with it."""

    serial: tuple[float, float]
    overlap: tuple[float, float]

    @property
    def hidden(self):
        return 1 - self.overlap[1] / self.serial[1]

    def holds(self, goal):
        return self.hidden >= goal


@dataclasses.dataclass
class Pipeline:
    """Milliseconds of a schedule: of measured steps, of simulated ones, and of all transfers one after the other."""

    schedule: str
    free: float
    slow: float
    simulated_free: float
    simulated_slow: float
    transfers: float

    @property
    def hidden(self):
        return 1 - (self.slow - self.free) / self.transfers

    @property
    def can_hide(self):
        return 1 - (self.simulated_slow - self.simulated_free) / self.transfers

    def goal(self, slack):
        return self.can_hide - slack

    def holds(self, slack):
        return self.hidden >= self.goal(slack)

    def line(self, slack):
        return (f"{self.schedule:<16}{self.free:>12.0f}{self.slow:>14.0f}{self.transfers:>12.0f}{self.hidden:>10.1%}"
                f"{self.can_hide:>10.1%} {self.goal(slack):>9.1%}{'' if self.holds(slack) else '   too little'}")


def status_of(options, gradients, pipelines):
    """The exit status for the measurements; gradients: None where they were not measured."""
    holds = [measured.holds(options.slack) for measured in pipelines]
    if gradients is not None:
        holds.append(gradients.holds(options.goal))
    return 0 if holds and all(holds) else 2


class Bench:
    """Plans of one model, and the measured times of their runs."""

    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.tools = options.build_dir / "bin"
        self.config = json.loads((pathlib.Path(options.model) / "config.json").read_text())

    def compile(self, name, flags):
        plan = self.folder / f"{name}.plan"
        run([self.tools / "bowline-compile", self.options.model, "--mode", "train", "--batch", self.options.batch, "--seq",
             self.options.seq, "--threads", "1", *flags, "-o", plan])
        return plan

    def train(self, plan, link, trace=None):
        """The steps' milliseconds and losses; trace: the events."""
        metrics = self.folder / "metrics.jsonl"
        metrics.unlink(missing_ok=True)
        command = [self.tools / "bowline-run", plan, "--data", self.options.data, "--steps", self.options.steps,
                   "--metrics", metrics, "--quiet"]
        if link:
            command += ["--link", link]
        if trace:
            command += ["--trace", trace]
        run(command)
        lines = [json.loads(line) for line in metrics.read_text().splitlines()]
        events = json.loads(trace.read_text())["traceEvents"] if trace else []
        return [line["step_ms"] for line in lines[1:]], [line["loss"] for line in lines], events

    @staticmethod
    def chunks_of(schedule):
        """Stages per rank."""
        return int(schedule.partition(":")[2] or (2 if schedule in ("zb_v", "dualpipe_v") else 1))

    def simulate(self, schedule, ranks, microbatches, transfer, times):
        """Microseconds of a step, with those of a transfer and of each stage's actions."""
        return int(run([self.options.build_dir / "test/bin/simulate-schedule", schedule, ranks, microbatches, transfer,
                        *(time for stage in times for time in stage)]))

    def keep(self, trace):
        if self.options.keep_traces:
            self.options.keep_traces.mkdir(parents=True, exist_ok=True)
            (self.options.keep_traces / trace.name).write_bytes(trace.read_bytes())


def measure_gradients(bench):
    options = bench.options
    plans = {"serial": bench.compile("serial", ["--mesh", "dp=2", "--disable-step", "overlap-commands"]),
             "overlap": bench.compile("overlap", ["--mesh", "dp=2"])}
    alone = statistics.median(bench.train(plans["serial"], None)[0])
    model = bench.config
    hidden, layers, vocabulary = model["hidden_size"], model["num_hidden_layers"], model["vocab_size"]
    head = hidden // model["num_attention_heads"]
    keys = head * model["num_key_value_heads"]
    parameters = layers * (2 * hidden * (hidden + keys) + 3 * hidden * model["intermediate_size"] + 2 * hidden)
    parameters += hidden + (1 if model["tie_word_embeddings"] else 2) * vocabulary * hidden
    # On a ring of two ranks an all-reduce moves each byte once over each link.
    bandwidth = options.bandwidth or f"{4 * parameters / (options.share * alone * 1e-3) / 1e6:.0f}MB/s"
    link = f"bandwidth={bandwidth},latency=20us"
    print(f"gradients: {parameters} parameters, dp=2; a step takes {alone:.0f} ms without a link; link {link}\n")
    rows, losses = {plan: [] for plan in plans}, {}
    for _ in range(options.rounds):
        for name, plan in plans.items():
            trace = bench.folder / f"{name}.json"
            step_ms, losses[name], events = bench.train(plan, link, trace)
            rows[name].append((statistics.median(step_ms), statistics.median(exposed_seconds(events)) * 1e3))
            bench.keep(trace)
    if losses["serial"] != losses["overlap"]:
        sys.exit(f"bench-overlap: losses differ: {losses}")
    print(f"{'plan':<10}{'step, ms':>12}{'exposed, ms':>14}   (medians of {options.rounds} runs)")
    medians = {name: [statistics.median(column) for column in zip(*runs)] for name, runs in rows.items()}
    for name, (step, exposed) in medians.items():
        print(f"{name:<10}{step:>12.0f}{exposed:>14.1f}")
    measured = Gradients(**{name: tuple(values) for name, values in medians.items()})
    print(f"\nhidden: {measured.hidden:.1%} of the reduction of the gradients (goal: {options.goal:.0%}); losses are equal, "
          "bit for bit\n")
    return measured


def action_times(events, stages):
    """Microseconds of each stage's forward and of both halves of its backward; of a whole backward, as the first half."""
    calls = {}
    for event in events:
        if event["ph"] != "X" or event["args"]["entry"] != "train_step" or event["cat"] not in ("compute", "copy"):
            continue
        # A fragment's name is its kind and its stage; one that also reduces gradients is another segment.
        kind, _, stage = event["args"]["segment"].split("+")[0].partition(".")
        if kind in ("forward", "backward", "backward_input", "backward_weight"):
            key = (kind, int(stage)), (event["pid"], event["args"]["run"], event["args"]["slot"])
            calls.setdefault(key[0], {}).setdefault(key[1], []).append(event["dur"])

    def time_of(kind, stage):
        durations = [sum(commands) for commands in calls.get((kind, stage), {}).values()]
        return round(statistics.median(durations)) if durations else 0

    return [(time_of("forward", stage), time_of("backward", stage) + time_of("backward_input", stage),
             time_of("backward_weight", stage)) for stage in range(stages)]


def count_sends(events):
    """Of all ranks in a step."""
    steps = {}
    for event in events:
        if event["ph"] == "X" and event["args"]["entry"] == "train_step" and event["name"].startswith("send "):
            steps[event["args"]["run"]] = steps.get(event["args"]["run"], 0) + 1
    return statistics.median(steps.values())


def measure_pipeline(bench):
    """Of each schedule."""
    options, ranks = bench.options, 2
    microbatches = options.microbatches
    transfer_bytes = 4 * (options.batch // microbatches) * options.seq * bench.config["hidden_size"]
    plans = {schedule: bench.compile(schedule, ["--mesh", f"pp={ranks}", "--schedule", schedule, "--microbatches",
                                                microbatches])
             for schedule in options.schedules.split(",")}
    first = next(iter(plans.values()))
    alone = statistics.median(bench.train(first, None)[0]) * 1e-3
    bandwidth = 2 * microbatches * transfer_bytes / (options.share * alone)
    if options.bandwidth:
        value, unit = re.fullmatch(r"([0-9.]+)([kMG]?)B/s", options.bandwidth).groups()
        bandwidth = float(value) * {"": 1, "k": 1e3, "M": 1e6, "G": 1e9}[unit]
    latency_us = 20
    links = {"free": None, "slow": f"bandwidth={bandwidth / 1e6:.0f}MB/s,latency={latency_us}us"}
    transfer_us = transfer_bytes / bandwidth * 1e6 + latency_us
    print(f"pipeline: pp={ranks}, {microbatches} microbatches, {transfer_bytes} bytes each way; a step takes "
          f"{alone * 1e3:.0f} ms without a link; link {links['slow']}: a transfer takes {transfer_us * 1e-3:.1f} ms\n")
    print(f"{'schedule':<16}{'step, ms':>12}{'on the link':>14}{'transfers':>12}{'hidden':>10}{'can hide':>10}{'goal':>10}   "
          f"(medians of {options.rounds} runs)")
    measured = []
    for schedule, plan in plans.items():
        steps, events = {name: [] for name in links}, {}
        for _ in range(options.rounds):
            for name, link in links.items():
                trace = bench.folder / f"{schedule.replace(':', '_')}-{name}.json"
                step_ms, _, events[name] = bench.train(plan, link, trace)
                steps[name] += step_ms
                bench.keep(trace)
        free, slow = statistics.median(steps["free"]), statistics.median(steps["slow"])
        transfers_ms = count_sends(events["free"]) * transfer_us * 1e-3
        times = action_times(events["free"], ranks * bench.chunks_of(schedule))
        simulated = [bench.simulate(schedule, ranks, microbatches, transfer, times) for transfer in (0, round(transfer_us))]
        measured.append(Pipeline(schedule, free, slow, *(value * 1e-3 for value in simulated), transfers_ms))
        print(measured[-1].line(options.slack), flush=True)
    print()
    return measured


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build-dir", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--model", default=str(ROOT / "examples/demo"))
    parser.add_argument("--data", default=str(ROOT / "test/oracle/tokens.bin"))
    parser.add_argument("--only", choices=["gradients", "pipeline"], help="measure nothing else")
    parser.add_argument("--batch", type=int, default=8, help="sequences per step, over all ranks")
    parser.add_argument("--seq", type=int, default=256)
    parser.add_argument("--microbatches", type=int, help="of the pipeline; otherwise one for each sequence")
    parser.add_argument("--schedules", default=",".join(SCHEDULES), help="of the pipeline")
    parser.add_argument("--steps", type=int, default=4, help="per run, the first not counted")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each plan, in turns")
    parser.add_argument("--share", type=float, default=0.3,
                        help="of a step that the link takes to move all gradients, or all that goes between the stages")
    parser.add_argument("--bandwidth", help="such as 100MB/s, instead of --share")
    parser.add_argument("--goal", type=float, default=0.7, help="least share of the gradients' reduction")
    parser.add_argument("--slack", type=float, default=0.1, help="share of transfers that a schedule may leave exposed "
                        "though it could hide them")
    parser.add_argument("--keep-traces", type=pathlib.Path, metavar="DIR", help="leave the last traces there")
    options = parser.parse_args()
    options.microbatches = options.microbatches or options.batch
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(options, pathlib.Path(name))
        print(f"model {options.model}, two ranks on {os.cpu_count()} processors, other load {os.getloadavg()[0]:.1f}\n")
        gradients = measure_gradients(bench) if options.only != "pipeline" else None
        pipelines = measure_pipeline(bench) if options.only != "gradients" else []
        return status_of(options, gradients, pipelines)


if __name__ == "__main__":
    sys.exit(main())
