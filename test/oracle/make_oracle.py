#!/usr/bin/env python3
"""Records what an implementation that shares no code with Bowline computes; see README.md.

  python3 -m venv oracle-venv
  oracle-venv/bin/pip install torch numpy
  oracle-venv/bin/python test/oracle/make_oracle.py run      # test/oracle/*.jsonl from the checked-in inputs
  oracle-venv/bin/python test/oracle/make_oracle.py inputs   # the inputs again: weights and tokens

`make check` needs none of this: it compares with the recorded files.
"""

import argparse
import json
import pathlib
import struct
import zlib

import numpy as np
import torch

import models
import training

HERE = pathlib.Path(__file__).resolve().parent
MODELS = HERE.parent / "Models"
TOKENS_MAGIC, TOKENS_VERSION = 20240520, 1


def read_config(model):
    return json.loads((MODELS / model / "config.json").read_text())


def write_safetensors(path, tensors):
    header, offset = {}, 0
    for name, value in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": [offset, offset + value.nbytes]}
        offset += value.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for value in tensors.values():
            file.write(value.astype("<f4").tobytes())


def read_safetensors(path):
    data = path.read_bytes()
    size, = struct.unpack_from("<Q", data)
    header, body = json.loads(data[8:8 + size]), data[8 + size:]
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        values = np.frombuffer(body[begin:end], dtype="<f4").reshape(entry["shape"])
        tensors[name] = torch.from_numpy(values.copy())
    return tensors


def make_weights(model):
    """Larger than a usual initialisation, biases away from zero and norms away from one: nothing may cancel.

    GPT-2's are larger still: the two formulas of GELU differ most near 2.
    """
    config = read_config(model)
    stddev = 0.2 if config["model_type"] == "gpt2" else 0.08
    generator = np.random.default_rng(zlib.crc32(model.encode()))
    tensors = {}
    for name, shape in models.weight_shapes(config).items():
        noise = generator.standard_normal(shape)
        if len(shape) == 2:
            value = stddev * noise
        elif name.endswith(".bias"):
            value = 0.05 * noise
        else:
            value = 1 + 0.1 * noise
        tensors[name] = value.astype(np.float32)
    write_safetensors(MODELS / model / "model.safetensors", tensors)


def make_tokens(path, count, vocabulary):
    """A stream with something to learn: with probability 3/4 the next token is a fixed function of the last one."""
    generator = np.random.default_rng(20240520)
    follower = generator.integers(0, vocabulary, vocabulary)
    tokens = [0]
    while len(tokens) < count:
        fresh = generator.integers(0, vocabulary)
        tokens.append(int(follower[tokens[-1]] if generator.random() < 0.75 else fresh))
    header = np.zeros(256, dtype="<i4")
    header[:3] = TOKENS_MAGIC, TOKENS_VERSION, count
    path.write_bytes(header.tobytes() + np.array(tokens, dtype="<u2").tobytes())


def read_tokens(path):
    data = path.read_bytes()
    header = np.frombuffer(data[:1024], dtype="<i4")
    assert header[0] == TOKENS_MAGIC and header[1] == TOKENS_VERSION
    tokens = np.frombuffer(data[1024:], dtype="<u2")
    assert len(tokens) == header[2]
    return torch.from_numpy(tokens.astype(np.int64))


def record(run, tokens):
    config = read_config(run["model"])
    weights = read_safetensors(MODELS / run["model"] / "model.safetensors")
    assert {name: tuple(w.shape) for name, w in weights.items()} == models.weight_shapes(config)
    lines, rounding = [], 0.0
    wide = training.train(config, weights, tokens, run["options"], run["steps"], torch.float64)
    for narrow, exact in zip(training.train(config, weights, tokens, run["options"], run["steps"]), wide):
        lines.append(json.dumps(dict(zip(("step", "loss", "grad_norm", "lr"), narrow))) + "\n")
        rounding = max(rounding, *(abs(a - b) / abs(b) for a, b in zip(narrow[1:3], exact[1:3])))
    (HERE / f"{run['name']}.jsonl").write_text("".join(lines))
    print(f"{run['name']}: {lines[0].strip()} ... {lines[-1].strip()}; f32 is within {rounding:.1e} of f64")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "inputs"))
    what = parser.parse_args().what
    torch.manual_seed(0)
    torch.set_num_threads(1)
    plan = json.loads((HERE / "runs.json").read_text())
    names = sorted({run["model"] for run in plan["runs"]})
    if what == "inputs":
        for model in names:
            make_weights(model)
        make_tokens(HERE / plan["data"], 3001, min(read_config(model)["vocab_size"] for model in names))
        return
    tokens = read_tokens(HERE / plan["data"])
    for run in plan["runs"]:
        record(run, tokens)


if __name__ == "__main__":
    main()
