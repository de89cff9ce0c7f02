#!/usr/bin/env python3
"""Writes a GGUF file to measure with, by the functions of the package gguf.

  make_gguf.py derive MODEL.gguf OUT.gguf --type Q8_0|BF16   the same model, its matrices decoded and written in another type
  make_gguf.py random MODEL.gguf OUT.gguf --type Q8_0|BF16   a model of the shape of Qwen2.5-0.5B, whose weights are drawn, with
                                                            MODEL's tokens and words that stand for nothing"""

import argparse
import sys

import gguf
import numpy

# Qwen2.5-0.5B's config.json, https://huggingface.co/Qwen/Qwen2.5-0.5B.
LAYERS, WIDTH, INNER, HEADS, KEY_HEADS, VOCABULARY, CONTEXT = 24, 896, 4864, 14, 2, 151936, 32768


def add(writer, name, values, kind):
    """Matrices are of the type `kind`, all else f32."""
    values = values.astype(numpy.float32)
    if values.ndim < 2:
        writer.add_tensor(name, values)
    else:
        writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)


def copy_fields(reader, writer, begin):
    """The fields whose names begin so."""
    for field in reader.fields.values():
        if not field.name.startswith(begin) or field.name in (gguf.Keys.General.ARCHITECTURE, gguf.Keys.General.FILE_TYPE):
            continue
        kind = field.types[0]
        writer.add_key_value(field.name, field.contents(), kind,
                             sub_type=field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None)


def derive(reader, writer, kind):
    copy_fields(reader, writer, ("general.", f"{writer.arch}.", "tokenizer."))
    for tensor in reader.tensors:
        add(writer, tensor.name, gguf.quants.dequantize(tensor.data, tensor.tensor_type), kind)


def draw(reader, writer, kind):
    copy_fields(reader, writer, ("tokenizer.ggml.model", "tokenizer.ggml.pre", "tokenizer.ggml.merges", "tokenizer.ggml.bos",
                                 "tokenizer.ggml.eos", "tokenizer.ggml.unk", "tokenizer.ggml.add"))
    tokens, types = (reader.fields[f"tokenizer.ggml.{key}"].contents() for key in ("tokens", "token_type"))
    more = VOCABULARY - len(tokens)
    writer.add_token_list(tokens + [f"<|word{i}|>" for i in range(more)])
    writer.add_token_types(types + [gguf.TokenType.UNUSED] * more)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KEY_HEADS)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(1e6)
    random = numpy.random.default_rng(1)

    def matrix(name, rows, columns):
        add(writer, name, random.standard_normal((rows, columns), numpy.float32) * columns**-0.5, kind)

    keys = WIDTH // HEADS * KEY_HEADS
    matrix("token_embd.weight", VOCABULARY, WIDTH)
    for layer in range(LAYERS):
        for name, rows in (("attn_q", WIDTH), ("attn_k", keys), ("attn_v", keys)):
            matrix(f"blk.{layer}.{name}.weight", rows, WIDTH)
            writer.add_tensor(f"blk.{layer}.{name}.bias", numpy.zeros(rows, numpy.float32))
        for name, rows, columns in (("attn_output", WIDTH, WIDTH), ("ffn_gate", INNER, WIDTH), ("ffn_up", INNER, WIDTH),
                                    ("ffn_down", WIDTH, INNER)):
            matrix(f"blk.{layer}.{name}.weight", rows, columns)
        for name in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{layer}.{name}.weight", numpy.ones(WIDTH, numpy.float32))
    writer.add_tensor("output_norm.weight", numpy.ones(WIDTH, numpy.float32))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("way", choices=("derive", "random"))
    parser.add_argument("model")
    parser.add_argument("out")
    parser.add_argument("--type", choices=("Q8_0", "BF16"), default="Q8_0")
    options = parser.parse_args()
    reader, kind = gguf.GGUFReader(options.model), gguf.GGMLQuantizationType[options.type]
    derives = options.way == "derive"
    architecture = reader.fields[gguf.Keys.General.ARCHITECTURE].contents() if derives else "qwen2"
    writer = gguf.GGUFWriter(options.out, architecture)
    (derive if derives else draw)(reader, writer, kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    sys.exit(main())
