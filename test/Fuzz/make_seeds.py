#!/usr/bin/env python3
"""Writes small inputs for the fuzz targets of the data formats, most of them valid: make_seeds.py OUTPUT_DIRECTORY"""

import json
import pathlib
import struct
import sys


def safetensors(header, data=b""):
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def llmc(tokens):
    return struct.pack("<256i", 20240520, 1, len(tokens), *[0] * 253) + struct.pack(f"<{len(tokens)}H", *tokens)


def npy(descr, data, count, major):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': ({count},), }}\n".encode()
    length = struct.pack("<H" if major == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([major, 0]) + length + header + data


def megatron(code, item, sizes, tokens):
    pointers = [item * sum(sizes[:i]) for i in range(len(sizes))]
    documents = list(range(len(sizes) + 1))
    index = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, code, len(sizes), len(documents))
    index += struct.pack(f"<{len(sizes)}i{len(pointers)}q{len(documents)}q", *sizes, *pointers, *documents)
    assert len(tokens) % 2 == 0
    return bytes([len(tokens) // 2]) + index + tokens


def tensor(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


MODELS = pathlib.Path(__file__).resolve().parent.parent / "Models"
TEMPLATES = json.loads((MODELS.parent / "Unit/Text/reference/chat-templates.json").read_text(encoding="utf-8"))

SEEDS = {
    "chat_template_fuzz": {
        str(number): recorded["source"].encode()
        for number, recorded in enumerate(TEMPLATES["snippets"] + TEMPLATES["chats"])
    },
    "config_fuzz": {path.parent.name: path.read_bytes() for path in sorted(MODELS.glob("*/config.json"))},
    "safetensors_fuzz": {
        "empty": safetensors({}),
        "metadata": safetensors({"__metadata__": {"format": "pt"}, "a": tensor("F32", [], 0, 4)}, bytes(4)),
        "types": safetensors(
            {
                "f64": tensor("F64", [1], 0, 8),
                "i64": tensor("I64", [1], 8, 16),
                "f16": tensor("F16", [2, 1], 16, 20),
                "bf16": tensor("BF16", [1, 1, 2], 20, 24),
                "u8": tensor("U8", [3], 24, 27),
                "bool": tensor("BOOL", [1], 27, 28),
                "none": tensor("I32", [0, 5], 28, 28),
            },
            bytes(range(28)),
        ),
    },
    "shard_index_fuzz": {
        "stages": json.dumps(
            {
                "version": 1,
                "step": 3,
                "mesh": [{"axis": "pp", "size": 2}, {"axis": "dp", "size": 2}, {"axis": "tp", "size": 3}],
                "role_axis": "pp",
                "parameters": {
                    "a": {"dtype": "F32", "shape": [7, 6], "cuts": [["tp"], []], "flat": ["dp"], "role": 1},
                    "b": {"dtype": "BF16", "shape": [4, 9], "view": [4, 3, 3], "cuts": [[], [], ["tp", "dp"]]},
                },
                "optimizer": {"step": {"dtype": "I32", "shape": []}},
            }
        ).encode(),
    },
    "dataset_fuzz": {
        "llmc": b"\0" + llmc([1, 2, 50256, 0, 5, 6, 7, 8]),
        "npy1": b"\0" + npy("<u2", struct.pack("<5H", 1, 2, 3, 4, 5), 5, 1),
        "npy2": b"\0" + npy("<i4", struct.pack("<2i", 1, -2), 2, 2),
        "megatron_u16": megatron(8, 2, [2, 0, 3], struct.pack("<5H", 1, 2, 3, 4, 5)),
        "megatron_i64": megatron(5, 8, [1, 1], struct.pack("<2q", 1, 2)),
    },
}

if __name__ == "__main__":
    for target, seeds in SEEDS.items():
        directory = pathlib.Path(sys.argv[1]) / target
        directory.mkdir(parents=True, exist_ok=True)
        for name, content in seeds.items():
            (directory / name).write_bytes(content)
