"""The trained model stories260K (260,000 parameters, by A. Karpathy, MIT), which is not in this repository.

`stories260K.bin` and `tok512.bin` are as its project llama2.c writes them: in the folder that BOWLINE_STORIES260K names,
else in `../shared/data/models/stories260K` beside this checkout."""

import array
import os
import pathlib
import struct

import tools
from gguf_models import Q8_0, llama_tokenizer, write_gguf

FOLDER = pathlib.Path(os.environ.get("BOWLINE_STORIES260K") or
                      tools.TEST_DIR.parent.parent / "shared/data/models/stories260K")
MISSING = f"needs stories260K.bin and tok512.bin in {FOLDER}; BOWLINE_STORIES260K names another folder"


def is_there():
    return (FOLDER / "stories260K.bin").exists() and (FOLDER / "tok512.bin").exists()


def read_model():
    """config.json, and its tensors by the names and in the order of Hugging Face: name, shape and values."""
    data = (FOLDER / "stories260K.bin").read_bytes()
    width, inner, layers, heads, of_keys, vocabulary, context = struct.unpack_from("<7i", data)
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": vocabulary, "hidden_size": width,
        "intermediate_size": inner, "num_hidden_layers": layers, "num_attention_heads": heads,
        "num_key_value_heads": of_keys, "max_position_embeddings": context, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
        "tie_word_embeddings": True,
    }
    values, at = array.array("f", data[28:]), 0

    def take(*shape):
        nonlocal at
        begin, at = at, at + shape[0] * (shape[1] if len(shape) == 2 else 1)
        return list(shape), values[begin:at]

    kv = width // heads * of_keys
    stacks = [("input_layernorm", (width,)), ("self_attn.q_proj", (width, width)), ("self_attn.k_proj", (kv, width)),
              ("self_attn.v_proj", (kv, width)), ("self_attn.o_proj", (width, width)),
              ("post_attention_layernorm", (width,)), ("mlp.gate_proj", (inner, width)), ("mlp.down_proj", (width, inner)),
              ("mlp.up_proj", (inner, width))]
    tensors = [("model.embed_tokens.weight", *take(vocabulary, width))]
    for module, shape in stacks:
        for layer in range(layers):
            of_shape, part = take(*shape)
            if module in ("self_attn.q_proj", "self_attn.k_proj"):
                part = apart(part, heads if module == "self_attn.q_proj" else of_keys, *shape)
            tensors.append((f"model.layers.{layer}.{module}.weight", of_shape, part))
    tensors.append(("model.norm.weight", *take(width)))
    return config, tensors


def apart(values, heads, rows, width):
    """Rows that rotary positions turn together lie beside each other in the file, and half a head apart here."""
    size = rows // heads
    order = [head * size + 2 * i + part for head in range(heads) for part in range(2) for i in range(size // 2)]
    return array.array("f", (x for row in order for x in values[row * width:(row + 1) * width]))


def read_tokens(vocabulary):
    """The text and the score of each token."""
    data, at = (FOLDER / "tok512.bin").read_bytes(), 4
    for _ in range(vocabulary):
        score, length = struct.unpack_from("<fi", data, at)
        yield data[at + 8:at + 8 + length].decode(), score
        at += 8 + length


def write(path, quantized=False, blocks=Q8_0):
    """The model as a GGUF file of F32, with its tokenizer, and no token at which texts end. Matrices whose rows are whole
    blocks are of type `blocks` where that is asked for."""
    config, tensors = read_model()
    pieces = [(text.replace(" ", "\u2581"), score) for text, score in read_tokens(config["vocab_size"])]
    write_gguf(path, config, tensors, quantized, llama_tokenizer(pieces), blocks)
