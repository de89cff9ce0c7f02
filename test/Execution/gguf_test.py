#!/usr/bin/env python3
"""Text from GGUF files is that from a directory of the same weights."""

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
FAMILIES = ["linear-tiny", "llama-tied", "llama-tiny", "llama3-tiny", "mistral-tiny", "qwen2-tiny", "qwen3-tiny"]
# Two layers whose rows are whole blocks.
BLOCKS = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 256, "hidden_size": 64,
    "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": False,
}


def string(text):
    return struct.pack("<Q", len(text)) + text.encode()


def name_of(key):
    if key in NAMES:
        return NAMES[key]
    _, _, layer, rest = key.split(".", 3)
    module, kind = rest.rsplit(".", 1)
    return f"blk.{layer}.{LAYER_NAMES[module]}.{kind}"


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


def frequency_factors(scaling, theta, size):
    """What divides each frequency of Llama 3.1, as files have it in a tensor."""
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


def write_gguf(path, config, tensors, quantized=False):
    """A file of version 3. Matrices are of type Q8_0 where that is asked for, and all else is of type F32."""
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
    table, data = b"", b""
    for key, shape, values in tensors:
        if family == "llama" and "q_proj" in key:
            values = interleaved(values, heads, *shape)
        if family == "llama" and "k_proj" in key:
            values = interleaved(values, of_keys, *shape)
        is_quantized = quantized and len(shape) == 2
        part = q8_0(values)[0] if is_quantized else values.tobytes()
        table += string(name_of(key)) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape),
                                                    8 if is_quantized else 0, len(data))
        data += part + b"\0" * (-len(part) % ALIGNMENT)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys)) + b"".join(keys) + table
    path.write_bytes(head + b"\0" * (-len(head) % ALIGNMENT) + data)


def random_tensors(config):
    source = random.Random(tools.TEST_SEED)
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


class Gguf(tools.ToolTest):
    def plan_of(self, model):
        plan = self.folder / f"{model.name}.plan"
        tools.succeed("bowline-compile", model, "--mode", "generate", "--seq", "24", *tools.ONE_THREAD, "-o", plan)
        return plan

    def text_of(self, model, plan=None):
        return tools.succeed("bowline-run", plan or self.plan_of(model), "--weights", model, "--prompt-tokens",
                             "65,32,107,110,111,116", "--max-new-tokens", "24", "--temperature", "0")

    def test_every_family_writes_the_same(self):
        for family in FAMILIES:
            with self.subTest(family=family):
                directory, path = tools.MODELS / family, self.folder / f"{family}.gguf"
                config = json.loads((directory / "config.json").read_text())
                write_gguf(path, config, list(read_tensors(directory)))
                text = self.text_of(directory)
                self.assertEqual(len(text.split(b",")), 24)
                self.assertEqual(self.text_of(path), text)
                # Either fits the plan of the other.
                self.assertEqual(self.text_of(path, self.plan_of(directory)), text)
                self.assertEqual(self.text_of(directory, self.plan_of(path)), text)

    def test_order_of_rows_matters(self):
        directory, path = tools.MODELS / "llama-tiny", self.folder / "x.gguf"
        config = json.loads((directory / "config.json").read_text())
        # Heads of queries that are not where they belong.
        tensors = [(key, shape, interleaved(values, config["num_attention_heads"], *shape) if "q_proj" in key else values)
                   for key, shape, values in read_tensors(directory)]
        write_gguf(path, config, tensors)
        self.assertNotEqual(self.text_of(path), self.text_of(directory))

    def test_blocks(self):
        tensors = list(random_tensors(BLOCKS))
        write_gguf(self.folder / "x.gguf", BLOCKS, tensors, quantized=True)
        rounded = [(key, shape, q8_0(values)[1] if len(shape) == 2 else values) for key, shape, values in tensors]
        write_directory(self.folder / "rounded", BLOCKS, rounded)
        self.assertEqual(self.text_of(self.folder / "x.gguf"), self.text_of(self.folder / "rounded"))

    def test_plans_for_serving_keep_blocks(self):
        tensors = list(random_tensors(BLOCKS))
        path, rounded = self.folder / "x.gguf", self.folder / "rounded"
        write_gguf(path, BLOCKS, tensors, quantized=True)
        write_directory(rounded, BLOCKS, [(key, shape, q8_0(values)[1] if len(shape) == 2 else values)
                                          for key, shape, values in tensors])
        kept, computed, whole = (self.folder / f"{name}.plan" for name in ("kept", "computed", "whole"))
        tools.succeed("bowline-compile", rounded, "--mode", "generate", "--seq", "32", *tools.ONE_THREAD, "-o", whole)
        for plan, flags in ((kept, []), (computed, ["--weights-dtype", "f32"])):
            tools.succeed("bowline-compile", path, "--mode", "serve", "--max-context", "32", "--buckets", "1,4",
                          "--kv-blocks", "4", *tools.ONE_THREAD, *flags, "-o", plan)
        text = self.text_of(rounded, whole)
        for weights, plan in ((path, kept), (path, computed), (rounded, computed)):
            self.assertEqual(self.text_of(weights, plan), text, plan)
        # Ranks divide whole blocks: rows of a matrix, or blocks of its rows where their number divides.
        divided = self.folder / "divided.plan"
        tools.succeed("bowline-compile", path, "--mode", "serve", "--max-context", "32", "--buckets", "1,4",
                      "--kv-blocks", "4", *tools.ONE_THREAD, "--mesh", "tp=2", "--verify-each=equiv", "-o", divided)
        self.assertEqual(self.text_of(path, divided), text)
        module = tools.succeed("bowline-translate", "--plan-to-mlir", divided, "-o", "-").decode()
        # Of the tables of tokens and logits, of queries and keys, and of the projection from heads.
        for shape in ("128x2x34", "32x2x34", "16x2x34", "64x1x34"):
            self.assertIn(f"tensor<{shape}xui8>", module)
        # The matrices alone are in blocks.
        module = tools.succeed("bowline-translate", "--plan-to-mlir", kept, "-o", "-").decode()
        self.assertEqual(module.count('format "q8_0"'), sum(len(shape) == 2 for _, shape, _ in tensors))
        self.assertIn("'model.embed_tokens.weight' is in no blocks in",
                      self.refusal("bowline-run", kept, "--weights", rounded, "--prompt-tokens", "1"))

    def refusal(self, name, *arguments):
        done = tools.start(name, *arguments)
        self.assertEqual(done.returncode, 1, done.stderr.decode())
        return done.stderr.decode()

    def test_refusals(self):
        directory, path = tools.MODELS / "llama-tiny", self.folder / "x.gguf"
        config = json.loads((directory / "config.json").read_text())
        tensors = list(read_tensors(directory))
        compile_path = ["bowline-compile", path, "--mode", "generate", "--seq", "8", "-o", self.folder / "y.plan"]
        plan = self.plan_of(directory)
        run_path = ["bowline-run", plan, "--weights", path, "--prompt-tokens", "1", "--max-new-tokens", "2"]
        write_gguf(path, config, tensors[:-1])
        missing = tensors[-1][0]
        self.assertIn(f"'{missing}' is missing", self.refusal(*run_path))
        write_gguf(path, {**config, "rope_theta": 5000.0}, tensors)
        self.assertIn('"rope_theta" is 5000.0, but 10000.0 in the plan', self.refusal(*run_path))
        write_gguf(path, {**config, "intermediate_size": 54}, tensors)
        self.assertIn("but the metadata asks for the shape [54, 36]", self.refusal(*compile_path))
        write_gguf(path, config, tensors)
        path.write_bytes(path.read_bytes()[:-100])
        for command in (compile_path, run_path):
            self.assertIn("lies beyond the end of the file", self.refusal(*command))


if __name__ == "__main__":
    tools.main()
