"""The phases of run-card, in the order of their worth. Each is a function of a Context that returns its result, a
dictionary for the summary with "verdict" (held, failed, stopped, not run) and "why", a line where it did not hold."""

import dataclasses
import json
import os
import pathlib
import re
import tempfile
import threading
import time

import bundle

# Losses on a card and on a processor differ by orders of sums, and in bf16 by where values are rounded: a hundred
# roundings of a loss near 6 in f32, and of its mean over 128 positions in bf16.
LOSS_TOLERANCE = {"f32": 1e-4, "bf16": 5e-3}
MATRIX_ATTENTION = "CudaKernels.AttentionByMatrixInstructions"


@dataclasses.dataclass
class Context:
    results: pathlib.Path  # where logs and results go
    deadline: float        # of the phase, by time.monotonic()
    quick: bool
    log: pathlib.Path
    earlier: dict          # results of phases before, by name

    def left(self):
        return max(0.0, self.deadline - time.monotonic())


def judge(failures, stopped=False, **rest):
    """A result that failed with the first of `failures`."""
    if stopped:
        return {"verdict": "stopped", "why": (failures or ["the time was over"])[0], **rest}
    return {"verdict": "failed" if failures else "held", "why": "; ".join(failures[:3]), **rest}


def card(context):
    names = ["name", "driver_version", "memory.total", "clocks.max.sm", "power.limit"]
    found = bundle.query_card(",".join(names))
    if found is None:
        return judge(["nvidia-smi is not there or finds no card"], card={})
    libraries = {}
    code = ("import importlib.metadata as m\n"
            "for d in m.distributions():\n"
            "  n = (d.metadata['Name'] or '').lower()\n"
            "  if n in ('torch', 'triton') or n.startswith(('nvidia-cublas', 'nvidia-cudnn', 'nvidia-nccl')):\n"
            "    print(n, d.version)\n")
    done = bundle.run(["python3", "-c", code], min(60, context.left()), context.log)
    if done.ok:
        libraries = dict(line.split() for line in done.output.splitlines() if len(line.split()) == 2)
    return judge([], card=dict(zip(names, found)), libraries=libraries)


def dtype_of(flags):
    return flags[flags.index("--dtype") + 1] if "--dtype" in flags else "f32"


def losses(context):
    """Small plans, four at a time, beside the losses of the same plan on a processor. With graphs the bits are those
    without."""
    cases = bundle.read_json("losses.json")
    jobs = [(name, driver) for name, case in cases.items() for driver in case["drivers"]]
    expected = {name: [line["loss"] for line in bundle.read_metrics(bundle.HERE / f"plans/losses/{name}.jsonl")
                       if "step_ms" in line] for name in cases}
    rows, lock, stopped = {}, threading.Lock(), []

    def work():
        with tempfile.TemporaryDirectory() as folder:
            while True:
                with lock:
                    if not jobs or stopped:
                        return
                    name, driver = jobs.pop(0)
                    log = context.log.with_suffix(f".{len(jobs)}.log")
                metrics = pathlib.Path(folder) / "metrics.jsonl"
                metrics.unlink(missing_ok=True)
                done = bundle.run([bundle.HERE / "bin/bowline-run", bundle.HERE / f"plans/losses/{name}.plan", "--data",
                                   bundle.HERE / "data/tokens.bin", "--steps", len(expected[name]), "--driver", bundle.driver_of(driver),
                                   "--metrics", metrics], min(60, context.left()), log, bundle.environment())
                with lock:
                    if done.status is None and context.left() <= 0:
                        stopped.append(name)
                    notes = [n for n in re.findall(r"note: (.*)", done.output) if not n.startswith("weights:")]
                    lines = bundle.read_metrics(metrics) if done.ok else []
                    rows[name, driver] = {"error": "" if done.ok else done.why(), "notes": notes,
                                          "losses": [line["loss"] for line in lines],
                                          "norms": [line.get("grad_norm") for line in lines]}

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    failures, table = [], []
    for name, case in cases.items():
        for driver in case["drivers"]:
            row = rows.get((name, driver))
            if row is None:
                continue
            table.append({"plan": name, "driver": driver, "difference": None, "bits": "", "notes": row["notes"]})
            where = f"{name} with '{driver}'"
            if row["error"]:
                failures.append(f"{where}: {row['error']}")
                table[-1]["bits"] = row["error"]
                continue
            difference = max(abs(a - b) for a, b in zip(row["losses"], expected[name], strict=True))
            table[-1]["difference"] = difference
            # Not `>`: no number is not within the tolerance.
            if not difference <= LOSS_TOLERANCE[dtype_of(case["flags"])]:
                failures.append(f"{where}: a loss differs from the processor's by {difference:.2g}")
            others = [other for other in case["drivers"]
                      if other != driver and other == driver.replace("graphs=1", "graphs=0")]
            for plain in (rows.get((name, other)) for other in others):
                if plain is None or plain["error"]:
                    continue
                same = (plain["losses"], plain["norms"]) == (row["losses"], row["norms"])
                table[-1]["bits"] = "those without graphs" if same else "others than without graphs"
                if not same:
                    failures.append(f"{where}: not the bits of the run without graphs")
    return judge(failures, bool(stopped), losses=table)


# Suites of run-tests, each with the tests that it takes of them; '' is all.
SUITES = {"replay": "", "attention": "", "epilogues": "CudaEpilogues.*", "nccl": ""}


def run_suites(context, suites):
    """At the same time, each with a log of its own."""
    rows, lock = [], threading.Lock()

    def work(suite, names, pattern):
        log = context.log.with_suffix(f".{suite}.log")
        filters = {"GTEST_FILTER": pattern} if pattern and "GTEST_FILTER" not in os.environ else {}
        done = bundle.run([bundle.HERE / "run-tests", *names], context.left(), log, {**os.environ, **filters})
        found = re.findall(rf"^(?:{'|'.join(names)})\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)  (.*)$", done.output, re.M)
        with lock:
            for passed, failed, skipped, seconds, verdict in found:
                rows.append({"suite": suite, "passed": int(passed), "failed": int(failed), "skipped": int(skipped),
                             "seconds": int(seconds), "verdict": verdict})
            if not found:
                rows.append({"suite": suite, "passed": len(re.findall(r"^\[ +OK \] \w", done.output, re.M)),
                             "failed": len(re.findall(r"^\[ +FAILED +\] .*ms\)$", done.output, re.M)), "skipped": 0,
                             "seconds": int(done.seconds), "verdict": done.why()})
            rows[-1]["failures"] = sorted(set(re.findall(r"^\[ +FAILED +\] (\S+)", done.output, re.M)))[:20]

    threads = [threading.Thread(target=work, args=(suite, names, pattern)) for suite, names, pattern in suites]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows.sort(key=lambda row: row["suite"])
    failures = [f"{row['suite']}: {row['verdict']}" for row in rows if row["verdict"] != "passed"]
    stopped = [row for row in rows if row["verdict"].startswith("stopped")]
    return judge(failures, len(stopped) == len(failures) > 0, suites=rows)


def suites_of_never_run(context):
    return run_suites(context, [(suite, ["kernels" if suite == "epilogues" else suite], pattern)
                                for suite, pattern in SUITES.items()])


def suites_of_all(context):
    return run_suites(context, [("conformance", ["conformance"], ""), ("kernels", ["kernels"], "")])


# Which kernels compute attention, whether graphs are used, and whether products are ranked by the library or measured.
CHOICES = {"own": "attention=own,graphs=0", "own, graphs": "attention=own,graphs=1",
           "cuDNN": "attention=cudnn,graphs=0", "cuDNN, any order": "attention=cudnn,any-order=1,graphs=0",
           "own, tuned": "attention=own,tune=1,graphs=0"}
# Steps of a run, where models.json says no other number.
STEPS, QUICK_STEPS = 25, 15


def steps_of(model, context):
    return bundle.read_json("models.json")[model].get("steps", QUICK_STEPS if context.quick else STEPS)


def best_of(rows):
    """The settings that won one by one, together."""
    step = {row["choice"]: row["step_ms"] for row in rows if row.get("step_ms")}
    if "own" not in step:
        return ""
    attention = min((name for name in ("own", "cuDNN", "cuDNN, any order") if name in step), key=step.get)
    settings = CHOICES[attention] + (",tune=1" if step.get("own, tuned", step["own"]) < step["own"] else "")
    return settings.replace("graphs=0", "graphs=1") if step.get("own, graphs", step["own"]) < step["own"] else settings


def training(model, also=()):
    """A phase: the model by each choice, then by the best of them; `also` has more: names, settings, plans."""

    def phase(context):
        rows, failures, stopped = [], [], False
        steps = steps_of(model, context)
        with tempfile.TemporaryDirectory() as folder:
            tokens = pathlib.Path(folder) / "tokens.npy"
            bundle.write_tokens(tokens, model)

            def measure(choice, settings, plan=None):
                nonlocal stopped
                if context.left() <= 0:
                    stopped = True
                    return
                figures, done = bundle.train(model, settings, tokens, folder, context.log, context.left(), plan,
                                             steps)
                rows.append({"choice": choice, "settings": settings, "plan": plan or model, **(figures or {})})
                if done.status is None and context.left() <= 0:
                    stopped = True
                if figures is None:
                    rows[-1]["error"] = done.why()
                    failures.append(f"{choice}: {done.why()}")

            for choice, settings in CHOICES.items():
                measure(choice, settings)
            for name, settings, plan in also:
                measure(name, settings, plan)
            settings = best_of(rows)
            if settings and settings not in CHOICES.values():
                measure("best of all", settings)
        result = judge(failures, stopped, model=model, training=rows)
        timed = [row for row in rows if row.get("step_ms")]
        if timed:
            fastest = min(timed, key=lambda row: row["step_ms"])
            result["fastest"] = {key: fastest[key] for key in ("choice", "settings", "plan", "step_ms")}
        return result

    return phase


def beside_torch(models):
    """A phase: PyTorch between two turns of the fastest of ours."""

    def phase(context):
        if not bundle.has_torch():
            return {"verdict": "not run", "why": "python3 has no module torch"}
        rows, failures, stopped = [], [], False
        with tempfile.TemporaryDirectory() as folder:
            tokens = pathlib.Path(folder) / "tokens.npy"
            for index, model in enumerate(models):
                bundle.write_tokens(tokens, model)
                # The rest of the time is divided among the models that are left.
                end = time.monotonic() + context.left() / (len(models) - index)
                fastest = context.earlier.get(model, {}).get("fastest", {"settings": CHOICES["own, graphs"], "plan": model})
                for who in ("ours", "torch", "ours", "torch"):
                    left = end - time.monotonic()
                    if left <= 0:
                        stopped = True
                        break
                    figures, done = (bundle.train_torch(model, context.log, left) if who == "torch" else
                                     bundle.train(model, fastest["settings"], tokens, folder, context.log, left,
                                                  fastest["plan"], steps_of(model, context)))
                    rows.append({"model": model, "who": who, "settings": fastest["settings"], **(figures or {})})
                    if figures is None:
                        rows[-1]["error"] = done.why()
                        if done.status is None:
                            stopped = True
                        elif "ran out of memory" not in done.why():
                            failures.append(f"{model}, {who}: {done.why()}")
                        break
        return judge(failures, stopped and not failures, torch=rows)

    return phase


def kernels(model):
    """A phase: each kernel of the model's plan alone."""

    def phase(context):
        sizes = bundle.read_json("models.json")[model]["kernels"]
        path = context.results / f"kernels-{model}.json"
        done = bundle.run([bundle.HERE / "bin/bowline-card-bench", bundle.HERE / f"plans/{model}.plan", "cuda",
                           "cuda:tune=1", sizes["copy_bytes"], sizes["product"], sizes["seconds"], path], context.left(), context.log,
                          bundle.environment())
        if not done.ok:
            return judge([done.why()], done.status is None, model=model)
        return judge([], model=model, kernels=json.loads(path.read_text(encoding="utf-8")))

    return phase


def sanitizer(context):
    """compute-sanitizer on attention by mma.sync and wgmma, small shapes."""
    program = bundle.tool("compute-sanitizer")
    if program is None:
        return {"verdict": "not run", "why": "there is no compute-sanitizer on the PATH or in CUDA_HOME"}
    rows, failures, stopped = [], [], False
    tools = {"memcheck": ["--report-api-errors", "no"], "racecheck": []}
    for index, (name, flags) in enumerate(tools.items()):
        done = bundle.run([program, "--tool", name, *flags, "--error-exitcode", 9, "./cuda-card-test",
                           f"--gtest_filter={MATRIX_ATTENTION}"], context.left() / (len(tools) - index), context.log,
                          bundle.environment(BOWLINE_REQUIRE_CARD="1"), bundle.HERE / "bin")
        summary = re.findall(r"^=+ ((?:ERROR|RACECHECK) SUMMARY.*)$", done.output, re.M)
        ran = re.search(r"^\[ +OK \] " + re.escape(MATRIX_ATTENTION), done.output, re.M) is not None
        rows.append({"tool": name, "summary": summary[-1] if summary else done.why(), "ran": ran,
                     "seconds": done.seconds})
        stopped |= done.status is None
        if done.status is not None and not (done.ok and ran and summary):
            failures.append(f"{name}: {rows[-1]['summary']}" + ("" if ran else ", and the test did not pass"))
    return judge(failures, stopped and not failures, sanitizer=rows)


def slices_of(path):
    """The commands of streams of computing in a trace."""
    return [event for event in json.loads(pathlib.Path(path).read_text(encoding="utf-8"))["traceEvents"]
            if event["ph"] == "X" and event["cat"] == "compute"]


def sums_by_name(events):
    sums = {}
    for event in events:
        sums[event["name"]] = sums.get(event["name"], 0) + event["dur"]
    return sums


def traces(model):
    """A phase: when commands ran, beside when they were predicted to."""

    def phase(context):
        measured, predicted = (context.results / f"{model}.{name}.json" for name in ("measured", "predicted"))
        with tempfile.TemporaryDirectory() as folder:
            tokens = pathlib.Path(folder) / "tokens.npy"
            bundle.write_tokens(tokens, model)
            done = bundle.run([bundle.HERE / "bin/bowline-run", bundle.HERE / f"plans/{model}.plan", "--data", tokens,
                               "--steps", 5, "--driver", "cuda", "--trace", measured], context.left(), context.log,
                              bundle.environment())
        if done.ok:
            done = bundle.run([bundle.HERE / "bin/bowline-inspect", bundle.HERE / f"plans/{model}.plan", "--trace",
                               predicted], context.left(), context.log, bundle.environment())
        if not done.ok:
            return judge([done.why()], done.status is None, model=model)
        predictions = slices_of(predicted)
        entries = {event["args"]["entry"] for event in predictions}
        ours = sums_by_name(event for event in slices_of(measured) if event["args"]["entry"] in entries)
        model_says = sums_by_name(predictions)
        # Two runs of an entry are kept.
        rows = [{"kernel": name, "measured_us": ours[name] / 2, "predicted_us": model_says.get(name)}
                for name in sorted(ours, key=ours.get, reverse=True)]
        return judge([], model=model, traces=rows)

    return phase


@dataclasses.dataclass
class Phase:
    name: str
    about: str
    seconds: int        # at most
    quick_seconds: int  # with --quick; 0 leaves it out
    run: object


PHASES = [
    Phase("card", "the card, its driver, its libraries", 60, 30, card),
    Phase("losses", "20 steps of small plans beside a processor's losses", 90, 50, losses),
    Phase("suites", "graphs, attention by cuDNN, epilogues, NCCL with one rank", 120, 60, suites_of_never_run),
    Phase("llama-1b", "Llama 1B by each choice", 150, 80, training("llama-1b")),
    Phase("gpt2-124m", "GPT-2 124M by each choice", 90, 60,
          training("gpt2-124m", [("own, no epilogues", CHOICES["own"], "gpt2-124m-no-epilogues"),
                                 ("own, own epilogues", "attention=own,epilogues=own,graphs=0", None)])),
    Phase("torch", "PyTorch beside the fastest of ours", 240, 0, beside_torch(["gpt2-124m", "llama-1b"])),
    Phase("kernels", "each kernel of Llama 1B alone", 90, 0, kernels("llama-1b")),
    Phase("sanitizer", "compute-sanitizer on attention by mma.sync and wgmma", 90, 0, sanitizer),
    Phase("traces", "when commands run, beside the prediction", 30, 0, traces("gpt2-124m")),
    Phase("gpt2-1.5b", "GPT-2 1.5B by each choice", 90, 0, training("gpt2-1.5b")),
    Phase("llama-8b-16-layers", "16 layers of Llama 8B by each choice", 90, 0, training("llama-8b-16-layers")),
    Phase("all-suites", "the contract of devices, and all kernels", 240, 0, suites_of_all),
]
