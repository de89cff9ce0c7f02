#!/usr/bin/env python3
"""Makes the attention of a model sharp: multiplies the weights of queries and keys of a .safetensors file, in place.

Random weights give flat attention: each position looks at all others nearly alike. Trained weights give sharp one, whose
probabilities reach down to the smallest numbers that f32 has, and below. Products with these are what processors may
be slow at. Weights and biases of queries and of keys are multiplied by --factor, scores of attention therefore by its
square, and nothing else changes. So benchmarks have sharp weights without training, the same ones everywhere.

Tensors are found by their names in Hugging Face models: q_proj, k_proj, q_norm and k_norm, and of GPT-2's c_attn the
first two thirds of each row. They have to be f32.
"""

import argparse
import array
import json
import pathlib
import re
import struct
import sys

# The demo's scores then have a deviation of about 40, so that of products of probabilities with gradients of 1e-6 one in
# ten is subnormal (of normal scores and rows of 256).
FACTOR = 16
SCALED = re.compile(r"\.(?:q_proj|k_proj|q_norm|k_norm|(c_attn))\.(?:weight|bias)$")


class WeightsError(Exception):
    """The message names the file, the error, and the remedy."""


def scale(values, row, part, factor):
    """Multiplies the first `part` of every `row` elements."""
    for begin in range(0, len(values), row):
        for i in range(begin, begin + part):
            values[i] *= factor


def sharpen(path, factor=FACTOR):
    """Returns the names of the tensors that it multiplied."""
    with open(path, "r+b") as file:
        size, = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        names = [name for name in header if SCALED.search(name)]
        if not names:
            raise WeightsError(f"{path}: no tensor is named as those of queries and keys are; add the model's to SCALED")
        for name in names:
            tensor = header[name]
            if tensor["dtype"] != "F32":
                raise WeightsError(f"{path}: {name} is {tensor['dtype']}; save it as F32")
            begin, end = (8 + size + offset for offset in tensor["data_offsets"])
            file.seek(begin)
            values = array.array("f", file.read(end - begin))
            if sys.byteorder != "little":
                values.byteswap()
            row = tensor["shape"][-1]
            scale(values, row, row * 2 // 3 if SCALED.search(name).group(1) else row, factor)
            if sys.byteorder != "little":
                values.byteswap()
            file.seek(begin)
            file.write(values.tobytes())
    return names


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--factor", type=float, default=FACTOR)
    options = parser.parse_args()
    try:
        print(f"{len(sharpen(options.file, options.factor))} tensors multiplied by {options.factor:g}")
    except (WeightsError, OSError) as error:
        sys.exit(f"sharp_weights: error: {error}")


if __name__ == "__main__":
    main()
