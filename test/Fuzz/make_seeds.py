#!/usr/bin/env python3
"""Writes small inputs for the fuzz targets of the data formats, most of them valid: make_seeds.py OUTPUT_DIRECTORY"""

import json
import pathlib
import struct
import sys


def safetensors(header, data=b""):
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def gguf(architecture, matrix="attn_q", epsilon="layer_norm_rms_epsilon"):
    """A model of one layer of which only the embedding and one matrix are there, in blocks."""
    def string(text):
        return struct.pack("<Q", len(text)) + text.encode()

    integers = {"context_length": 16, "embedding_length": 32, "block_count": 1, "feed_forward_length": 32,
                "attention.head_count": 2}
    keys = [string("general.architecture") + struct.pack("<I", 8) + string(architecture)]
    keys += [string(f"{architecture}.{key}") + struct.pack("<II", 4, value) for key, value in integers.items()]
    keys.append(string(f"{architecture}.attention.{epsilon}") + struct.pack("<If", 6, 1e-5))
    keys.append(string("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, 2) + string("a") + string("b"))
    head = b"GGUF" + struct.pack("<IQQ", 3, 2, len(keys)) + b"".join(keys)
    head += string("token_embd.weight") + struct.pack("<IQQIQ", 2, 32, 2, 3, 0)
    head += string(f"blk.0.{matrix}.weight") + struct.pack("<IQQIQ", 2, 32, 32, 8, 64)
    return head + bytes(-len(head) % 32) + bytes(64) + bytes(32 * 34)


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


def tokenizer(text, **parts):
    model = {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "\u0120": 3}, "merges": ["a b"]}
    file = {"added_tokens": [{"id": 4, "content": "<s>", "special": True, "lstrip": True}], "model": model, **parts}
    return json.dumps(file).encode() + b"\0" + text


BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": True}

USER = {"role": "user", "content": "ab c"}
BODIES = {
    "chat": {"model": "mirror", "messages": [{"role": "developer", "content": "d"}, USER], "max_completion_tokens": 3,
             "temperature": 0, "n": 2, "stop": ["x", "ba"], "logprobs": True, "top_logprobs": 3, "user": "me"},
    "parts": {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
                           {"role": "assistant", "content": "c"}, {**USER, "name": None}], "stream": True,
              "stream_options": {"include_usage": True}, "seed": -1, "top_p": 0.5, "top_k": 2},
    "completion": {"prompt": "ab \u00e9\u20ac", "max_tokens": 60, "stop": "c", "logprobs": 2, "seed": 2**63, "n": 3},
    "ids": {"prompt": [5, 1, 2, 0, 7], "stream": True, "logprobs": 0, "presence_penalty": 0, "logit_bias": {}},
    "refused": {"prompt": ["a", "b"], "tools": [{"type": "function"}], "best_of": 2, "echo": True, "temperature": 1e400},
    "tokenize": {"prompt": "a <|end|>b", "add_special_tokens": False, "model": "mirror"},
}

SEEDS = {
    "http_body_fuzz": {name: json.dumps(body).encode() for name, body in BODIES.items()},
    "tokenizer_fuzz": {
        "byte_level": tokenizer(b"ab <s>b", pre_tokenizer=BYTE_LEVEL, decoder=BYTE_LEVEL),
        "split": tokenizer(b"ab 12", decoder=BYTE_LEVEL, normalizer={"type": "NFC"}, pre_tokenizer={
            "type": "Split", "pattern": {"Regex": r"\s+(?!\S)|[^\r\n\p{L}]?\p{L}+"}, "behavior": "MergedWithNext"}),
        "metaspace": tokenizer(b" a b", pre_tokenizer={"type": "Metaspace", "replacement": "_"}, decoder={
            "type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}]}),
    },
    "chat_template_fuzz": {
        str(number): recorded["source"].encode()
        for number, recorded in enumerate(TEMPLATES["snippets"] + TEMPLATES["chats"])
    },
    "config_fuzz": {path.parent.name: path.read_bytes() for path in sorted(MODELS.glob("*/config.json"))},
    "gguf_fuzz": {**{name: gguf(name) for name in ("llama", "qwen2")},
                  "gpt2": gguf("gpt2", "attn_output", "layer_norm_epsilon")},
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
        "llmc_u32": b"\0" + struct.pack("<256i", 20240801, 7, 5, *[0] * 253) + struct.pack("<5I", 1, 2, 50256, 50257, 2**32 - 1),
        "npy_u8": b"\0" + npy("|u1", bytes([1, 2, 3, 255]), 4, 1),
        "npy_u64": b"\0" + npy("<u8", struct.pack("<4Q", 1, 2, 50256, 2**64 - 1), 4, 1),
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
