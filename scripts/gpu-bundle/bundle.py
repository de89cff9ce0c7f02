"""The bundle's files, calls of its programs with a limit of time, and figures that follow from times of steps."""

import json
import os
import pathlib
import random
import re
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
# Of a training run, these steps allocate, choose algorithms and capture graphs.
WARM_UP_STEPS = 5

# Dense products in bf16, TFLOP/s, by NVIDIA's data sheets of the SXM cards.
NOMINAL_BF16_TFLOPS = {"A100": 312, "H100": 989, "H200": 989, "B200": 2250}


def read_json(path):
    return json.loads((HERE / path).read_text(encoding="utf-8"))


def environment(**more):
    """In which the bundle's programs find its libraries, and NVIDIA's where Python packages hold them."""
    try:
        import nvidia  # pylint: disable=import-outside-toplevel
        wheels = sorted({os.path.dirname(os.path.abspath(path)) for path in nvidia.__path__})
    except ImportError:
        wheels = []
    given = os.environ.get("BOWLINE_CUDA_LIBRARIES", "")
    libraries = ":".join(([given] if given else []) + wheels)
    path = ":".join(filter(None, [str(HERE / "lib"), os.environ.get("LD_LIBRARY_PATH", "")]))
    return {**os.environ, "LD_LIBRARY_PATH": path, "BOWLINE_CUDA_LIBRARIES": libraries, **more}


class Finished:
    """How a command ended: `status` is its exit status, or None where it was stopped at its limit."""

    def __init__(self, status, output, seconds):
        self.status, self.output, self.seconds = status, output, seconds

    @property
    def ok(self):
        return self.status == 0

    def why(self):
        """One line for a table."""
        if self.status is None:
            return f"stopped after {self.seconds:.0f} s"
        lines = [line for line in self.output.splitlines() if line.strip()]
        errors = [line for line in lines if "error" in line.lower()] or lines[-1:]
        return f"exit status {self.status}" + (f": {errors[0].strip()[:200]}" if errors else "")


def run(command, seconds, log, env=None, cwd=None):
    """Ends the command and all that it started when the time is over. Both outputs are appended to the file `log`."""
    began = time.monotonic()
    with open(log, "ab") as file:
        file.write(("$ " + " ".join(map(str, command)) + "\n").encode())
        file.flush()
        from_here = file.tell()
        if seconds <= 0:
            return Finished(None, "", 0)
        try:
            process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=file,
                                       stderr=subprocess.STDOUT, env=env, cwd=cwd, start_new_session=True)
        except OSError as error:
            return Finished(127, f"error: {error}", 0)
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
    with open(log, "rb") as file:
        file.seek(from_here)
        output = file.read().decode(errors="replace")
    return Finished(status, output, time.monotonic() - began)


def query_card(fields):
    """The values that nvidia-smi reports for these fields of the first card, or None."""
    try:
        done = subprocess.run(["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits"], check=False,
                              capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    line = done.stdout.strip().splitlines()[:1]
    return [part.strip() for part in line[0].split(",")] if done.returncode == 0 and line else None


class CardMemory:
    """With `with`: the most memory of the card that was in use meanwhile, in MiB, as nvidia-smi reports it."""

    def __init__(self, seconds_between=0.3):
        self.most = None
        self._between = seconds_between
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self):
        while not self._over.is_set():
            used = query_card("memory.used")
            if used is None:
                return
            if used[0].isdigit():
                self.most = max(self.most or 0, int(used[0]))
            self._over.wait(self._between)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()


def write_tokens(path, model, count=2_000_000):
    """Random tokens of the model's vocabulary as a NumPy file, the same in each run."""
    below = min(1 << 16, read_json(f"models/{model}/config.json")["vocab_size"])
    tokens = random.Random(1).choices(range(below), k=count)
    header = f"{{'descr': '<u2', 'fortran_order': False, 'shape': ({count},), }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(struct.pack(f"<{count}H", *tokens))


def read_metrics(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def driver_of(settings):
    return f"cuda:{settings}" if settings else "cuda"


def flops_of_token(model):
    """By two conventions: 6 for each parameter; and 12 L H Q T more for the products of attention (Chowdhery et al. 2022,
    PaLM, appendix B), of which half is counted here, as a causal mask leaves it."""
    config = read_json(f"models/{model}/config.json")
    layers = config.get("num_hidden_layers", config.get("n_layer"))
    heads = config.get("num_attention_heads", config.get("n_head"))
    width = config.get("hidden_size", config.get("n_embd"))
    size = config.get("head_dim", width // heads)
    six_n = 6 * read_json("plans.json")[model]["parameters"]
    return six_n, six_n + 12 * layers * heads * size * read_json("models.json")[model]["seq"] / 2


def nominal_tflops(card):
    return next((peak for name, peak in NOMINAL_BF16_TFLOPS.items() if card and name in card), None)


def figures_of(model, step_ms, card):
    """Of a step of so many milliseconds."""
    shape = read_json("models.json")[model]
    rate = shape["batch"] * shape["seq"] / step_ms * 1e3
    figures = {"step_ms": step_ms, "tokens_per_s": rate}
    peak = nominal_tflops(card)
    for name, flops in zip(("mfu", "mfu_attention"), flops_of_token(model)):
        figures[name] = rate * flops / (peak * 1e12) if peak else None
    return figures


def train(model, settings, tokens, folder, log, seconds, plan=None, steps=25):
    """Figures of a training run of Bowline, or how it failed: (figures, Finished)."""
    metrics = pathlib.Path(folder) / "metrics.jsonl"
    metrics.unlink(missing_ok=True)
    with CardMemory() as memory:
        done = run([HERE / "bin/bowline-run", HERE / f"plans/{plan or model}.plan", "--data", tokens, "--steps", steps,
                    "--driver", driver_of(settings), "--metrics", metrics], seconds, log, environment())
    if not done.ok:
        return None, done
    lines = [line for line in read_metrics(metrics) if "step_ms" in line]
    timed = lines[min(WARM_UP_STEPS, len(lines) - 1):]
    times = [line["step_ms"] for line in timed]
    card = query_card("name")
    notes = re.findall(r"note: (.*)", done.output)
    return {**figures_of(model, statistics.median(times), card and card[0]), "fastest_ms": min(times),
            "slowest_ms": max(times), "host_ms": statistics.median(line.get("host_ms", 0) for line in timed),
            "memory_mib": memory.most, "loss": lines[-1]["loss"], "seconds": done.seconds,
            "notes": [note for note in notes if not note.startswith("weights:")]}, done


def has_torch():
    return run([sys.executable, "-c", "import torch"], 120, os.devnull).ok


def train_torch(model, log, seconds, steps=20):
    """Likewise, of PyTorch. A run that takes the card's memory is one that failed."""
    shape = read_json("models.json")[model]
    with CardMemory() as memory:
        done = run([sys.executable, HERE / "bench_torch.py", HERE / f"models/{model}/config.json", "--batch",
                    shape["batch"], "--seq", shape["seq"], "--steps", steps], seconds, log, environment())
    if not done.ok:
        if "OutOfMemoryError" in done.output:
            done.output = "error: PyTorch ran out of memory"
        return None, done
    line = json.loads([line for line in done.output.splitlines() if line.startswith("{")][-1])
    card = query_card("name")
    return {**figures_of(model, line["step_ms"], card and card[0]), "memory_mib": memory.most,
            "allocated_gib": line["peak_gib"], "seconds": done.seconds}, done


def tool(name):
    """A program of the toolkit, which may be there or not."""
    found = shutil.which(name)
    toolkit = pathlib.Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "bin" / name
    return found or (str(toolkit) if toolkit.exists() else None)
