"""Models as GGUF files and as directories, written for tests."""

import array
import json
import math
import random
import struct

import tools

ALIGNMENT = 32
NAMES = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
    "rope_freqs.weight": "rope_freqs.weight",
}
LAYER_NAMES = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
# Of GPT-2, whose matrices in layers are [in, out] in directories and [out, in] in files.
GPT2_NAMES = {
    "transformer.wte.weight": "token_embd.weight",
    "transformer.wpe.weight": "position_embd.weight",
    "transformer.ln_f.weight": "output_norm.weight",
    "transformer.ln_f.bias": "output_norm.bias",
    "lm_head.weight": "output.weight",
}
GPT2_LAYER_NAMES = {
    "ln_1": "attn_norm",
    "attn.c_attn": "attn_qkv",
    "attn.c_proj": "attn_output",
    "ln_2": "ffn_norm",
    "mlp.c_fc": "ffn_up",
    "mlp.c_proj": "ffn_down",
}
F32, F16, Q4_1, Q8_0 = 0, 1, 3, 8  # types of tensors


def string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def name_of(key, names=NAMES, layer_names=LAYER_NAMES):
    if key in names:
        return names[key]
    _, _, layer, rest = key.split(".", 3)
    module, kind = rest.rsplit(".", 1)
    return f"blk.{layer}.{layer_names[module]}.{kind}"


def interleaved(values, heads, rows, width):
    """Rows of each head in the order of llama's GGUF files: those that rotary positions turn together lie together."""
    half = rows // heads // 2
    order = [(head * 2 + part) * half + i for head in range(heads) for i in range(half) for part in range(2)]
    return array.array("f", (x for row in order for x in values[row * width:(row + 1) * width]))


def q8_0(values):
    """The blocks, and the values that they stand for."""
    data, rounded = b"", array.array("f")
    for begin in range(0, len(values), 32):
        block = values[begin:begin + 32]
        (scale,) = struct.unpack("<e", struct.pack("<e", max(map(abs, block)) / 127))
        quants = [max(-127, min(127, round(x / scale))) for x in block]
        data += struct.pack("<e32b", scale, *quants)
        rounded.extend(scale * q for q in quants)
    return data, rounded


def q4_1(values):
    """The blocks, and the values that they stand for."""
    data, rounded = b"", array.array("f")
    for begin in range(0, len(values), 32):
        block = values[begin:begin + 32]
        scale, least = struct.unpack("<2e", struct.pack("<2e", (max(block) - min(block)) / 15, min(block)))
        quants = [max(0, min(15, round((x - least) / scale))) if scale else 0 for x in block]
        data += struct.pack("<2e16B", scale, least, *(low | high << 4 for low, high in zip(quants[:16], quants[16:])))
        rounded.extend(scale * q + least for q in quants)
    return data, rounded


def frequency_factors(scaling, theta, size):
    """The divisors of the frequencies of Llama 3.1, as files have them in a tensor."""
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    for i in range(size // 2):
        turns = scaling["original_max_position_embeddings"] * theta ** (-2 * i / size) / (2 * math.pi)
        kept = min(1, max(0, (turns - low) / (high - low)))
        yield 1 / (kept + (1 - kept) / scaling["factor"])


def read_tensors(model):
    """Name to shape and values of a file of f32."""
    data = (model / "model.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    for key, tensor in header.items():
        begin, end = (8 + length + offset for offset in tensor["data_offsets"])
        assert tensor["dtype"] == "F32"
        yield key, tensor["shape"], array.array("f", data[begin:end])


def write_directory(folder, config, tensors):
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    header, data = {}, b""
    for key, shape, values in tensors:
        header[key] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + 4 * len(values)]}
        data += values.tobytes()
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)


def write_gguf(path, config, tensors, quantized=False, more=(), blocks=Q8_0):
    """A file of version 3. Matrices whose rows are whole blocks are of type `blocks` where that is asked for, and all else
    is of type F32. `more` is metadata, stored."""
    family, heads = {"mistral": "llama"}.get(config["model_type"], config["model_type"]), config["num_attention_heads"]
    of_keys = config.get("num_key_value_heads", heads)
    size = config.get("head_dim", config["hidden_size"] // heads)
    integers = {
        "context_length": config["max_position_embeddings"], "embedding_length": config["hidden_size"],
        "block_count": config["num_hidden_layers"], "feed_forward_length": config["intermediate_size"],
        "attention.head_count": heads, "attention.head_count_kv": of_keys, "attention.key_length": size,
        "attention.value_length": size, "rope.dimension_count": size,
    }
    scaling = config.get("rope_parameters") or config.get("rope_scaling") or {}
    theta, kind = config.get("rope_theta") or scaling["rope_theta"], scaling.get("rope_type")
    floats = {"attention.layer_norm_rms_epsilon": config["rms_norm_eps"], "rope.freq_base": theta}
    keys = [string("general.architecture") + struct.pack("<I", 8) + string(family)]
    keys += [string(f"{family}.{key}") + struct.pack("<II", 4, value) for key, value in integers.items()]
    keys += [string(f"{family}.{key}") + struct.pack("<If", 6, value) for key, value in floats.items()]
    if kind == "linear":
        keys += [string(f"{family}.rope.scaling.type") + struct.pack("<I", 8) + string("linear"),
                 string(f"{family}.rope.scaling.factor") + struct.pack("<If", 6, scaling["factor"])]
    if kind == "llama3":
        factors = array.array("f", frequency_factors(scaling, theta, size))
        tensors = [*tensors, ("rope_freqs.weight", [size // 2], factors)]
    if config["model_type"] == "mistral":
        keys += [string("llama.attention.sliding_window") + struct.pack("<II", 4, config["sliding_window"])]
    keys += more
    stored = []
    for key, shape, values in tensors:
        if family == "llama" and "q_proj" in key:
            values = interleaved(values, heads, *shape)
        if family == "llama" and "k_proj" in key:
            values = interleaved(values, of_keys, *shape)
        is_quantized = quantized and len(shape) == 2 and shape[1] % 32 == 0
        stored.append((name_of(key), shape, values, blocks if is_quantized else F32))
    write_file(path, keys, stored)


def llama_tokenizer(pieces):
    """Metadata of a tokenizer of texts and their scores, whose first tokens are an unknown one, the begin and the end."""
    kinds = [2, 3, 3] + [6 if text.startswith("<0x") else 1 for text, _ in pieces[3:]]
    return [string("tokenizer.ggml.model") + struct.pack("<I", 8) + string("llama"),
            string("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, len(pieces)) +
            b"".join(string(text) for text, _ in pieces),
            string("tokenizer.ggml.scores") + struct.pack(f"<IIQ{len(pieces)}f", 9, 6, len(pieces),
                                                          *(score for _, score in pieces)),
            string("tokenizer.ggml.token_type") + struct.pack(f"<IIQ{len(kinds)}i", 9, 5, len(kinds), *kinds),
            string("tokenizer.ggml.bos_token_id") + struct.pack("<II", 4, 1)]


def write_file(path, keys, tensors):
    """A file of metadata as it is stored, and of tensors: name, shape, values and type."""
    table, data = b"", b""
    for name, shape, values, kind in tensors:
        part = encoded(values, kind)[0]
        table += string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), kind, len(data))
        data += part + b"\0" * (-len(part) % ALIGNMENT)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys)) + b"".join(keys) + table
    path.write_bytes(head + b"\0" * (-len(head) % ALIGNMENT) + data)


def encoded(values, kind):
    """The bytes of a type, and the values that they stand for."""
    if kind == Q8_0:
        return q8_0(values)
    if kind == Q4_1:
        return q4_1(values)
    if kind == F16:
        data = struct.pack(f"<{len(values)}e", *values)
        return data, array.array("f", struct.unpack(f"<{len(values)}e", data))
    return values.tobytes(), values


def transposed(values, rows, width):
    return array.array("f", (values[row * width + column] for column in range(width) for row in range(rows)))


def is_conv1d(key, shape):
    """Whether GPT-2 has the tensor as [in, out] in directories."""
    return len(shape) == 2 and ".h." in key


def gpt2_stored(tensors, kind):
    """The tensors of a file: names, shapes, values and types. Matrices are of type `kind`, apart from positions."""
    for key, shape, values in tensors:
        name = name_of(key, GPT2_NAMES, GPT2_LAYER_NAMES)
        if is_conv1d(key, shape):
            values, shape = transposed(values, *shape), shape[::-1]
        yield name, shape, values, kind if len(shape) == 2 and name != "position_embd.weight" else F32


def gpt2_rounded(tensors, kind):
    """The tensors of a directory for the same weights."""
    names = {name_of(key, GPT2_NAMES, GPT2_LAYER_NAMES): key for key, _, _ in tensors}
    for name, shape, values, stored in gpt2_stored(tensors, kind):
        values = encoded(values, stored)[1]
        if is_conv1d(names[name], shape):
            values, shape = transposed(values, *shape), shape[::-1]
        yield names[name], shape, values


def write_gpt2(path, config, tensors, kind=F32, more=()):
    integers = {
        "context_length": config["n_positions"], "embedding_length": config["n_embd"],
        "feed_forward_length": config["n_inner"], "block_count": config["n_layer"], "attention.head_count": config["n_head"],
    }
    keys = [string("general.architecture") + struct.pack("<I", 8) + string("gpt2")]
    keys += [string(f"gpt2.{key}") + struct.pack("<II", 4, value) for key, value in integers.items()]
    keys.append(string("gpt2.attention.layer_norm_epsilon") + struct.pack("<If", 6, config["layer_norm_epsilon"]))
    write_file(path, [*keys, *more], list(gpt2_stored(tensors, kind)))


def random_gpt2(config):
    source = random.Random(tools.TEST_SEED)
    width, inner = config["n_embd"], config["n_inner"]
    matrices = {"transformer.wte.weight": [config["vocab_size"], width],
                "transformer.wpe.weight": [config["n_positions"], width]}
    vectors = {"transformer.ln_f": width}
    for layer in range(config["n_layer"]):
        prefix = f"transformer.h.{layer}."
        matrices |= {f"{prefix}attn.c_attn.weight": [width, 3 * width], f"{prefix}attn.c_proj.weight": [width, width],
                     f"{prefix}mlp.c_fc.weight": [width, inner], f"{prefix}mlp.c_proj.weight": [inner, width]}
        vectors |= {f"{prefix}ln_1": width, f"{prefix}ln_2": width}
    if not config["tie_word_embeddings"]:
        matrices["lm_head.weight"] = [config["vocab_size"], width]
    for key, shape in matrices.items():
        yield key, shape, array.array("f", (source.gauss(0, 0.3) for _ in range(math.prod(shape))))
        if is_conv1d(key, shape):
            yield key.replace(".weight", ".bias"), shape[1:], array.array("f", (source.gauss(0, 0.3) for _ in range(shape[1])))
    for module, size in vectors.items():
        yield f"{module}.weight", [size], array.array("f", (source.uniform(0.5, 1.5) for _ in range(size)))
        yield f"{module}.bias", [size], array.array("f", (source.gauss(0, 0.3) for _ in range(size)))


def random_tensors(config, seed=None):
    source = random.Random(tools.TEST_SEED if seed is None else seed)
    width, inner = config["hidden_size"], config["intermediate_size"]
    of_keys = width // config["num_attention_heads"] * config["num_key_value_heads"]
    shapes = {"model.embed_tokens.weight": [config["vocab_size"], width]}
    for layer in range(config["num_hidden_layers"]):
        prefix = f"model.layers.{layer}."
        shapes |= {
            f"{prefix}input_layernorm.weight": [width], f"{prefix}self_attn.q_proj.weight": [width, width],
            f"{prefix}self_attn.k_proj.weight": [of_keys, width], f"{prefix}self_attn.v_proj.weight": [of_keys, width],
            f"{prefix}self_attn.o_proj.weight": [width, width], f"{prefix}post_attention_layernorm.weight": [width],
            f"{prefix}mlp.gate_proj.weight": [inner, width], f"{prefix}mlp.up_proj.weight": [inner, width],
            f"{prefix}mlp.down_proj.weight": [width, inner],
        }
    shapes |= {"model.norm.weight": [width], "lm_head.weight": [config["vocab_size"], width]}
    for key, shape in shapes.items():
        if len(shape) == 1:
            yield key, shape, array.array("f", (source.uniform(0.5, 1.5) for _ in range(shape[0])))
        else:
            yield key, shape, array.array("f", (source.gauss(0, 0.3) for _ in range(shape[0] * shape[1])))
