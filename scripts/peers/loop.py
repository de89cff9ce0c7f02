"""Code that the peers' training programs share: options, batches, metrics lines. Needs NumPy and safetensors."""

import argparse
import json
import pathlib

import numpy as np
from safetensors.numpy import load_file


def parse(description, **modes):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--model", type=pathlib.Path, required=True, help="Hugging Face directory")
    parser.add_argument("--data", type=pathlib.Path, required=True, help="tokens as .npy")
    parser.add_argument("--metrics", required=True, help="where the JSON lines go: step, loss, grad_norm")
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--seq", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--dtype", choices=("f32", "bf16"), required=True)
    for name in ("lr", "beta1", "beta2", "eps", "weight-decay", "clip-norm"):
        parser.add_argument("--" + name, type=float, required=True)
    for name, choices in modes.items():
        parser.add_argument("--" + name, choices=choices, default=choices[0])
    return parser.parse_args()


def read_config(folder):
    return json.loads((folder / "config.json").read_text(encoding="utf-8"))


def read_weights(folder):
    """Name -> float32 array."""
    return load_file(folder / "model.safetensors")


def batches(options):
    """Yields (inputs, labels), int32 [batch, seq] each, in the order of `bowline-run --order sequential`."""
    tokens = np.load(options.data).astype(np.int32)
    samples = (len(tokens) - 1) // options.seq
    for step in range(options.steps):
        rows = [(step * options.batch + i) % samples * options.seq for i in range(options.batch)]
        chosen = np.stack([tokens[row:row + options.seq + 1] for row in rows])
        yield np.ascontiguousarray(chosen[:, :-1]), np.ascontiguousarray(chosen[:, 1:])


def report(file, step, loss, grad_norm):
    file.write(json.dumps({"step": step, "loss": loss, "grad_norm": grad_norm}) + "\n")
    file.flush()
