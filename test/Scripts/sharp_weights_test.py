#!/usr/bin/env python3
"""Tests of scripts/sharp_weights.py."""

import importlib.util
import json
import pathlib
import struct
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
specification = importlib.util.spec_from_file_location("sharp_weights", ROOT / "scripts" / "sharp_weights.py")
sharp_weights = importlib.util.module_from_spec(specification)
specification.loader.exec_module(sharp_weights)

LAYER = "model.layers.0.self_attn"


class SharpWeightsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "model.safetensors"

    def write(self, tensors, dtype="F32"):
        header, data = {"__metadata__": {"format": "pt"}}, b""
        for name, (shape, values) in tensors.items():
            piece = struct.pack(f"<{len(values)}f", *values)
            header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(piece)]}
            data += piece
        text = json.dumps(header).encode()
        self.path.write_bytes(struct.pack("<Q", len(text)) + text + data)

    def read(self):
        content = self.path.read_bytes()
        size, = struct.unpack("<Q", content[:8])
        header = json.loads(content[8:8 + size])
        return {name: list(struct.unpack(f"<{(t['data_offsets'][1] - t['data_offsets'][0]) // 4}f",
                                         content[8 + size:][slice(*t["data_offsets"])]))
                for name, t in header.items() if name != "__metadata__"}

    def test_queries_and_keys_are_multiplied_and_nothing_else(self):
        names = [f"{LAYER}.{x}.weight" for x in ("v_proj", "q_proj", "k_proj", "o_proj")] + ["model.embed_tokens.weight"]
        self.write({name: ([1, 2], [1.0, -2.0]) for name in names})
        self.assertEqual(sharp_weights.sharpen(self.path, 16), [f"{LAYER}.q_proj.weight", f"{LAYER}.k_proj.weight"])
        self.assertEqual(self.read(), {name: [16.0, -32.0] if name[-13:] in ("q_proj.weight", "k_proj.weight")
                                       else [1.0, -2.0] for name in names})

    def test_of_rows_with_queries_keys_and_values_two_thirds(self):
        self.write({"h.0.attn.c_attn.weight": ([2, 6], [1.0] * 12), "h.0.attn.c_attn.bias": ([6], [1.0] * 6),
                    "h.0.attn.c_proj.weight": ([1, 2], [1.0, 1.0])})
        sharp_weights.sharpen(self.path, 3)
        row = [3.0, 3.0, 3.0, 3.0, 1.0, 1.0]
        self.assertEqual(self.read(), {"h.0.attn.c_attn.weight": row + row, "h.0.attn.c_attn.bias": row,
                                       "h.0.attn.c_proj.weight": [1.0, 1.0]})

    def test_refusals(self):
        self.write({"model.embed_tokens.weight": ([1], [1.0])})
        with self.assertRaisesRegex(sharp_weights.WeightsError, "no tensor is named"):
            sharp_weights.sharpen(self.path)
        self.write({f"{LAYER}.q_proj.weight": ([1], [1.0])}, dtype="I32")
        with self.assertRaisesRegex(sharp_weights.WeightsError, "q_proj.weight is I32"):
            sharp_weights.sharpen(self.path)


if __name__ == "__main__":
    unittest.main()
