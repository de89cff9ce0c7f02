#!/usr/bin/env python3
"""Measures serving of one small model beside llama.cpp, ik_llama.cpp, OpenVINO GenAI and vLLM.

The model is SmolLM2-135M-Instruct in Q4_1, the GGUF file of a Python package. Candidates take turns, a process each, and in
a turn, with 1 and with 2 threads on as many processors, come: the time from the start to the first token of a prompt of 16
tokens, prefill (a prompt of 512 tokens until its first token), and decode (128 tokens after 16); with 2 threads also the
first token of a running server, and 8 and 32 requests at once. All are greedy, have the same prompts, which no earlier
one begins like, and end by their length. Printed are medians, with the least and the most.

Prints tables in Markdown and writes bench-serve-peers.md and .json beside the environments of peers, build/serve-peers.
docs/benchmarks.md says how each candidate is driven. A peer that does not install within --install-minutes, and a
measurement that does not end in its time, is skipped by name.

Exit status: 0 when each goal is met, 2 otherwise.
"""

import argparse
import importlib.util
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
from peers import processes, serve_client, serve_install, serve_results  # pylint: disable=wrong-import-position

PEERS = ROOT / "scripts/peers"
# Each is one token with the space before it.
WORDS = ("one two three four five six seven eight nine ten cat dog sun sea tree house water fire book door hand time day "
         "night road food red blue green white black north south east west king queen game music summer winter").split()
CACHE_TOKENS = 8192  # of keys and values, of everyone: 32 sequences of 16 + 128 tokens, and a prompt of 512
MAX_CONTEXT, STREAMS = 2560, 32
BOWLINE = {
    "as-stored": ("Bowline, weights as stored", ["--dtype", "f32", "--weights-dtype", "as-stored"]),
    "f32": ("Bowline, f32", ["--dtype", "f32", "--weights-dtype", "f32"]),
    "bf16": ("Bowline, bf16", ["--dtype", "bf16", "--weights-dtype", "bf16"]),
}
LLAMA_CPP = {"llama.cpp": "llama_cpp", "ik_llama.cpp": "ik_llama_cpp"}
WEIGHTS = {"bf16": "bf16", "vllm": "bf16"}  # of candidates that have others than the file's
TITLES = {"llama.cpp": "llama.cpp, {}", "llama.cpp-server": "llama.cpp, {}, by its Python server",
          "ik_llama.cpp": "ik_llama.cpp, {}", "openvino": "OpenVINO GenAI, {}", "vllm": "vLLM, bf16"}


def weights_in(model):
    """The type of a file's weights, by its name: "Q8_0" of "small-q8_0.gguf"."""
    found = re.search(r"(?<![a-z0-9])(b?f16|f32|i?q[0-9][a-z0-9_]*)$", model.stem.lower())
    return "as in the file" if not found else found[1] if "f" in found[1] else found[1].upper()


def title_of(name, model):
    return BOWLINE[name][0] if name in BOWLINE else TITLES[name].format(weights_in(model))


def prompts(count, tokens, seed):
    """Texts of so many tokens: cycles of four words, which greedy models go on with, each begun with other words."""
    draw, found = random.Random(seed), []
    for _ in range(count):
        cycle = draw.sample(WORDS, 4)
        found.append("".join(f" {cycle[i % 4]}" for i in range(tokens)))
    return found


def weight_bytes_of(report, stored_bytes):
    """Bytes of a plan's parameters by the report of bowline-compile; None if the report does not say."""
    found = re.search(r"^parameters: (\d+) in", report, re.MULTILINE)
    return None if not found else {"f32": 4 * int(found[1]), "bf16": 2 * int(found[1]), "as-stored": stored_bytes}


class Candidate:
    def __init__(self, name, title, weight_bytes, start, weights="as in the file"):
        self.name, self.start = name, start  # start(threads, log, processors, limit_s) -> Session
        self.row = {"name": name, "title": title, "ours": name in BOWLINE, "weights": WEIGHTS.get(name, weights),
                    "weight_bytes": weight_bytes, "values": {},
                    "failed": [], "notes": [], "others_cpus": [], "loads": []}
        self.streams = (8, 32)

    def take(self, key, value):
        self.row["values"].setdefault(key, []).append(value)


class Bench:
    def __init__(self, options, scratch):
        self.options, self.scratch, self.seed = options, scratch, 0
        self.processors = sorted(os.sched_getaffinity(0))

    def fresh(self, count, tokens):
        self.seed += 1
        return prompts(count, tokens, self.seed)

    def checked(self, answers, prompt_tokens, tokens):
        """Answers, if they have as many tokens as was asked for: else rates would be of something else."""
        if set(answers.tokens) != {tokens}:
            raise serve_client.Failed(f"wrote {min(answers.tokens)} tokens instead of {tokens}")
        if set(answers.prompt_tokens) - {None} not in (set(), {prompt_tokens}):
            raise serve_client.Failed(f"saw {answers.prompt_tokens[0]} tokens in a prompt of {prompt_tokens}")
        return answers._replace(prompt_tokens=[prompt_tokens] * len(answers.tokens))

    def ask(self, session, count, prompt_tokens, tokens, texts=None):
        return self.checked(session.generate(texts or self.fresh(count, prompt_tokens), tokens), prompt_tokens, tokens)

    def turn(self, candidate, threads, limit_s):
        """Starts the candidate and measures it with so many threads."""
        self.seed = 0  # the same prompts for everyone
        with candidate.start(threads, self.scratch / "log", self.processors[:threads], limit_s) as session:
            candidate.row["loads"].append(session.load)
            try:
                self.measure(candidate, threads, session)
            finally:
                if session.killed or session.process.poll() is None:
                    candidate.row["others_cpus"].append(session.others_cpus())

    def measure(self, candidate, threads, session):
        options = self.options
        answers, seconds = session.first(self.fresh(1, 16)[0])
        self.checked(answers, 16, 2)
        if threads == 2:
            candidate.take("start", seconds)
        # The same text for all, so that the generated texts can be compared.
        decoded = self.ask(session, 1, 16, options.decode_tokens, prompts(1, 16, -threads))
        candidate.row.setdefault("text", decoded.texts[0])
        candidate.take(f"decode/{threads}", serve_results.decode_rate(decoded))
        for _ in range(options.repeat):
            candidate.take(f"prefill/{threads}", serve_results.prefill_rate(self.ask(session, 1, 512, 2)))
        if threads == 2:
            for _ in range(options.repeat):
                candidate.take("first", self.ask(session, 1, 16, 2).first_s[0] * 1e3)
            for streams in options.streams:
                if streams in candidate.streams:
                    self.measure_streams(candidate, session, streams)
            if candidate.streams and isinstance(session, serve_client.Server):
                candidate.take("pause", session.pause(self.fresh(4, 16), options.stream_tokens, self.fresh(1, 2000)[0]))
            candidate.take("memory", session.peak_bytes() / serve_results.MIB)

    def measure_streams(self, candidate, session, streams):
        """Tokens that came are counted: Bowline has no way to go on after a token that ends the text."""
        wanted = self.options.stream_tokens
        answers = session.generate(self.fresh(streams, 16), wanted)
        candidate.take(f"streams/{streams}", serve_results.stream_rate(answers))
        early = sum(tokens < wanted for tokens in answers.tokens)
        if early:
            candidate.row["notes"].append(f"{early} of {streams} streams ended before {wanted} tokens")

    def run(self, candidates):
        """Rounds in turns, in the opposite order every other one; each turn has its share of the time that is left."""
        order = [(candidate, threads) for candidate in candidates for threads in self.options.threads]
        turns = [(round_, *pair) for round_ in range(self.options.rounds) for pair in order[::-1 if round_ % 2 else 1]]
        deadline = time.monotonic() + self.options.minutes * 60
        for i, (round_, candidate, threads) in enumerate(turns):
            left = deadline - time.monotonic()
            where = f"round {round_ + 1}, {threads} thread{'s' * (threads > 1)}"
            print(f"bench-serve-peers: {where}: {candidate.row['title']}", file=sys.stderr, flush=True)
            try:
                if left <= 0:
                    raise serve_client.Failed("no time was left")
                self.turn(candidate, threads, left / min(len(turns) - i, 4) if self.options.quick else left)
            except serve_client.Failed as error:
                candidate.row["failed"].append(f"{where}: {error}")

    def read_rates(self):
        probe, source = self.options.environments / "read_rate", PEERS / "read_rate.cc"
        if not probe.exists() or probe.stat().st_mtime < source.stat().st_mtime:
            probe.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run(["clang++-22", "-std=c++20", "-O3", "-march=native", "-pthread", source, "-o", probe], check=True)
        return {n: json.loads(subprocess.run([probe, str(n)], check=True, capture_output=True, text=True).stdout)["best"]
                for n in self.options.threads}


def bowline(name, options, model, folder):
    """(candidate, None), or (None, why there is none), after compiling its plans."""
    title, flags = BOWLINE[name]
    plans, sizes = {}, None
    for threads in options.threads:
        plans[threads] = folder / f"{name}-{threads}.plan"
        command = [options.build_dir / "bin/bowline-compile", model, "--mode", "serve", "--max-context", MAX_CONTEXT,
                   "--max-batch", STREAMS, "--kv-blocks", CACHE_TOKENS // 16, "--threads", threads, "--report", *flags,
                   "-o", plans[threads]]
        compiled = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
        if compiled.returncode != 0:
            return None, (compiled.stderr.strip().splitlines() or ["no message"])[-1][:200]
        sizes = weight_bytes_of(compiled.stdout + compiled.stderr, model.stat().st_size)
    if not sizes:
        return None, "bowline-compile --report says no parameters"

    def start(threads, log, processors, limit_s):
        port = serve_client.free_port()
        return serve_client.Server([options.build_dir / "bin/bowline-serve", plans[threads], "--weights", model, "--port",
                                    port], port, log, processors, limit_s)
    return Candidate(name, title, sizes[name], start, weights_in(model)), None


def vllm(python, model, folder):
    """(candidate, None), or (None, why there is none), after writing the model in bf16."""
    directory = folder / "bf16"
    made = subprocess.run([python, PEERS / "make_hf_model.py", model, directory], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        return None, (made.stderr.strip().splitlines() or ["make_hf_model.py failed"])[-1][:200]

    def start(threads, log, processors, limit_s):
        port = serve_client.free_port()
        return serve_client.Server(
            [python, "-m", "vllm.entrypoints.openai.api_server", "--model", directory, "--dtype", "bfloat16", "--max-model-len",
             MAX_CONTEXT, "--max-num-seqs", STREAMS, "--host", "127.0.0.1", "--port", port], port, log, processors, limit_s,
            {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": ",".join(map(str, processors)),
             "OMP_NUM_THREADS": str(threads), "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"})
    return Candidate("vllm", title_of("vllm", model), (directory / "model.safetensors").stat().st_size, start), None


def peer(name, python, model):
    """The candidate of an installed peer."""
    if name == "llama.cpp-server":
        def start(threads, log, processors, limit_s):
            port = serve_client.free_port()
            return serve_client.Server([python, "-m", "llama_cpp.server", "--model", model, "--n_ctx", MAX_CONTEXT,
                                        "--n_threads", threads, "--n_threads_batch", threads, "--host", "127.0.0.1", "--port",
                                        port], port, log, processors, limit_s)
    else:
        program = ["run_llama.py", "--package", LLAMA_CPP[name]] if name in LLAMA_CPP else ["run_openvino.py"]

        def start(threads, log, processors, limit_s):
            return serve_client.Runner([python, PEERS / program[0], *program[1:], "--model", model, "--threads", threads,
                                        "--context", CACHE_TOKENS, "--streams", STREAMS], log, processors, limit_s,
                                       {"OMP_NUM_THREADS": str(threads), "PYTHONDONTWRITEBYTECODE": "1"})
    candidate = Candidate(name, title_of(name, model), model.stat().st_size, start, weights_in(model))
    if name == "llama.cpp-server":  # computes one request at a time
        candidate.streams = ()
    return candidate


def prepare(options, model, folder):
    """(candidates, rows of skipped candidates)"""
    found, skipped = [], []

    def skip(name, reason):
        title = title_of(name, model)
        print(f"bench-serve-peers: skipped: {title}: {reason}", file=sys.stderr, flush=True)
        skipped.append({"name": name, "title": title, "ours": name in BOWLINE, "weights": WEIGHTS.get(name, weights_in(model)),
                        "values": {}, "failed": [reason], "others_cpus": [], "weight_bytes": 0})

    pythons = {}
    for name in options.candidates:
        if name in BOWLINE:
            candidate, reason = bowline(name, options, model, folder)
            found += [candidate] if candidate else []
            if reason:
                skip(name, reason)
            continue
        of = name.removesuffix("-server")
        if of not in pythons:
            pythons[of] = serve_install.install(of, options.environments, options.install_minutes * 60)
        python, reason = pythons[of]
        candidate = None
        if python and of == "vllm":
            candidate, reason = vllm(python, model, folder)
        elif python:
            candidate = peer(name, python, model)
        if candidate:
            found.append(candidate)
        else:
            skip(name, reason)
    return found, skipped


def model_of(options):
    if options.model:
        return options.model
    specification = importlib.util.spec_from_file_location("serve_demo", ROOT / "scripts/serve-demo.py")
    serve_demo = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(serve_demo)
    options.environments.mkdir(parents=True, exist_ok=True)
    return serve_demo.fetch(options.environments)


def names(text):
    known = [*BOWLINE, *TITLES]
    chosen = text.split(",")
    for name in chosen:
        if name not in known:
            raise argparse.ArgumentTypeError(f"'{name}' is not among {','.join(known)}")
    return [name for name in known if name in chosen]


def parse_arguments(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build-dir", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--environments", type=pathlib.Path, default=ROOT / "build/serve-peers", help="where peers are")
    parser.add_argument("--model", type=pathlib.Path, help="GGUF file; not given: that of the package")
    parser.add_argument("--candidates", type=names, default=[*BOWLINE, *TITLES],
                        help=f"of {','.join([*BOWLINE, *TITLES])}")
    parser.add_argument("--install-minutes", type=float, default=40, help="that a peer may take to install")
    parser.add_argument("--minutes", type=float, default=60, help="for all turns together")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", choices=("1", "2", "1,2"), help="not given: 1,2; with --quick 2")
    parser.add_argument("--quick", action="store_true", help="one round with 2 threads, 32 tokens decoded, 8 streams, in less "
                        "than 5 minutes once peers are there")
    options = parser.parse_args(arguments)
    options.environments = options.environments.absolute()
    given, options.streams, options.repeat = options.threads or ("2" if options.quick else "1,2"), (8, 32), 5
    options.threads = tuple(map(int, given.split(",")))
    options.decode_tokens = options.stream_tokens = 128
    if options.quick:
        options.rounds, options.streams, options.repeat = 1, (8,), 1
        options.decode_tokens = options.stream_tokens = 32
        options.minutes = min(options.minutes, 4)
    return options


def main():
    options = parse_arguments()
    if not (options.build_dir / "bin/bowline-serve").exists():
        sys.exit(f"bench-serve-peers: error: {options.build_dir}/bin/bowline-serve does not exist; run 'make build', or give "
                 "--build-dir")
    # A candidate is in a session of its own, so that only this program can end it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("bench-serve-peers: error: terminated"))
    model = model_of(options)
    with tempfile.TemporaryDirectory(prefix="bench-serve-peers-") as name:
        folder = pathlib.Path(name)
        candidates, skipped = prepare(options, model, folder)
        bench = Bench(options, folder)
        result = {"date": time.strftime("%Y-%m-%d %H:%M"), "load_before": processes.load_average(),
                  "processors": len(bench.processors), "read_gb_per_s": bench.read_rates()}
        bench.run(candidates)
        again = bench.read_rates()
        result["read_gb_per_s"] = {n: max(rate, again[n]) for n, rate in result["read_gb_per_s"].items()}
        result["load_after"] = processes.load_average()
        result["rows"] = [candidate.row for candidate in candidates] + skipped
    text = serve_results.markdown(result)
    for suffix, content in (("md", text), ("json", json.dumps(result, indent=1) + "\n")):
        (options.environments / f"bench-serve-peers.{suffix}").write_text(content, encoding="utf-8")
    print(text, end="")
    return serve_results.status(result)


if __name__ == "__main__":
    sys.exit(main())
