#!/usr/bin/env python3
"""Writes what all candidates start from: DIR/model.safetensors beside DIR/config.json, and tokens as a .npy file.

Matrices are normal with standard deviation 0.02, scales of norms near one and biases near zero but not at them, so that
a forgotten one changes the loss. Small token ids are more frequent than large ones: there is something to learn.
"""

import argparse
import json
import pathlib
import sys

import numpy as np
from safetensors.numpy import save_file

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "test/oracle"))
import models  # pylint: disable=wrong-import-position


def weight(name, shape, generator):
    noise = generator.standard_normal(shape, dtype=np.float32)
    if len(shape) >= 2 or name.endswith(".bias"):
        return np.float32(0.02) * noise
    return 1 + np.float32(0.1) * noise


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=pathlib.Path, required=True, help="folder with config.json")
    parser.add_argument("--tokens", type=pathlib.Path, required=True, help="the .npy file to write")
    parser.add_argument("--count", type=int, required=True, help="how many tokens")
    options = parser.parse_args()
    config = json.loads((options.model / "config.json").read_text(encoding="utf-8"))
    generator = np.random.default_rng(20261121)
    shapes = models.weight_shapes(config)
    save_file({name: weight(name, shape, generator) for name, shape in shapes.items()},
              options.model / "model.safetensors")
    ids = (config["vocab_size"] * generator.random(options.count) ** 3).astype(np.uint16)
    np.save(options.tokens, ids)


if __name__ == "__main__":
    main()
