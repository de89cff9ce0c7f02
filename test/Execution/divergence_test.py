#!/usr/bin/env python3
"""How far predictions are from those in f32 where something is rounded: weights and what is computed in bf16, weights in blocks
of bits beside the same weights decoded, and caches of keys and values in bf16 and int8.

The bounds of RECORDED are twice what was found, for the mean and the 99.9th percentile of the KL divergence in nats; and of
tokens that are no more the likeliest ones, twice as many and half a percent. Weights and texts are always the same, so that
only the order of sums, which follows from the processor, may change the divergence. A divergence below a tenth of the
recorded one fails, apart from weights in blocks, which not all processors round."""

import json
import math
import re
import unittest

import stories260k
import tools
from gguf_models import Q4_1, Q8_0, llama_tokenizer, random_tensors, write_gguf

# Rows of a step: products of few rows, and those of more than 48.
ROWS = (8, 64)
MARGIN, FEW = 2, 0.005
KINDS = {"Q8_0": Q8_0, "Q4_1": Q4_1}  # of blocks
WAYS = {
    "weights in bf16": ["--weights-dtype", "bf16", "--dtype", "bf16"],
    "weights in blocks": ["--weights-dtype", "as-stored"],
    "caches in bf16": ["--weights-dtype", "f32", "--kv-dtype", "bf16"],
    "caches in int8": ["--weights-dtype", "f32", "--kv-dtype", "int8"],
}
# By model, type of the blocks that the file has, and way: mean, 99.9th percentile, and share of positions with the same likeliest
# token, the worst of ROWS, on a processor with AVX512-BF16, AVX512-VNNI and AMX.
RECORDED = {
    ("random", "Q8_0", "weights in bf16"): (0.00012, 0.00046, 0.9741),
    ("random", "Q8_0", "weights in blocks"): (5.3e-09, 2.6e-08, 0.9995),
    ("random", "Q8_0", "caches in bf16"): (8.6e-06, 3.8e-05, 0.9922),
    ("random", "Q8_0", "caches in int8"): (6.9e-05, 0.0004, 0.9800),
    ("random", "Q4_1", "weights in blocks"): (5.8e-09, 2.3e-08, 1.0),
    ("stories260K", "Q8_0", "weights in bf16"): (0.00016, 0.0034, 0.9932),
    ("stories260K", "Q8_0", "weights in blocks"): (4.9e-09, 4.7e-08, 1.0),
    ("stories260K", "Q8_0", "caches in bf16"): (3.9e-05, 0.00089, 0.9956),
    ("stories260K", "Q8_0", "caches in int8"): (0.0011, 0.022, 0.9849),
    ("stories260K", "Q4_1", "weights in blocks"): (5.4e-09, 4.9e-08, 1.0),
}


class DivergenceTest(tools.ToolTest):
    def compile(self, weights, plan, rows, flags):
        tools.succeed("bowline-compile", weights, "--mode", "serve", "--max-context", 64, "--block-tokens", 4, "--max-batch",
                      rows, "--buckets", rows, "--kv-blocks", 16, "--with-logits", *tools.ONE_THREAD, *flags, "-o", plan)

    def compare(self, weights, text, rows, flags):
        reference, plan = self.folder / f"f32-{weights.name}-{rows}.plan", self.folder / "s.plan"
        if not reference.exists():
            self.compile(weights, reference, rows, ["--weights-dtype", "f32"])
        self.compile(weights, plan, rows, flags)
        found = json.loads(tools.succeed("../test/bin/plan-divergence", "--reference", reference, "--reference-weights", weights,
                                         "--plan", plan, "--weights", weights, "--text", text))
        self.assertGreater(found["positions"], 1000)
        return found

    def compare_all(self, model, text, write):
        """Compares the divergence of a model with the recorded one. Returns the found numbers: (kind, way, rows) to numbers."""
        all_found = {}
        for kind, blocks in KINDS.items():
            weights = self.folder / f"{kind}.gguf"
            write(weights, blocks)
            for way, flags in WAYS.items():
                # Rows of a step change products alone.
                for rows in ROWS[:1] if way.startswith("caches") else ROWS:
                    if (model, kind, way) not in RECORDED:
                        continue
                    found = all_found[kind, way, rows] = self.compare(weights, text, rows, flags)
                    with self.subTest(model=model, kind=kind, way=way, rows=rows):
                        self.expect(found, *RECORDED[model, kind, way], way)
        return all_found

    def expect(self, found, mean, p99_9, same_top, way):
        self.assertLess(abs(found["mean"]), MARGIN * mean, found)
        self.assertLess(abs(found["p99_9"]), MARGIN * p99_9, found)
        self.assertLess(1 - found["same_top"], MARGIN * (1 - same_top) + FEW, found)
        if way != "weights in blocks":
            self.assertGreater(found["mean"], mean / 10, "nothing was rounded")


class RandomModel(DivergenceTest):
    """Random weights, on a text that stays as it is: the licence."""

    CONFIG = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 259, "hidden_size": 96,
        "intermediate_size": 160, "num_hidden_layers": 3, "num_attention_heads": 6, "num_key_value_heads": 2,
        "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": False,
    }

    def write(self, path, blocks):
        # Matrices whose products are about as large as their inputs: 0.3 / 3 is about 96 ** -0.5.
        tensors = [(key, shape, values if len(shape) == 1 else type(values)("f", (x / 3 for x in values)))
                   for key, shape, values in random_tensors(self.CONFIG, seed=1)]
        bytes_alone = [(text, 0.0) for text in ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]]
        write_gguf(path, self.CONFIG, tensors, quantized=True, more=llama_tokenizer(bytes_alone), blocks=blocks)

    def test_divergence(self):
        self.compare_all("random", tools.TEST_DIR.parent / "LICENSE", self.write)


@unittest.skipUnless(stories260k.is_there(), stories260k.MISSING)
class Stories(DivergenceTest):
    """A trained model, on texts that it writes."""

    def test_divergence(self):
        config, _ = stories260k.read_model()
        pieces = [re.sub(r"^<0x(..)>$", lambda byte: chr(int(byte[1], 16)), text)
                  for text, _ in stories260k.read_tokens(config["vocab_size"])]
        with open(tools.ORACLE / "stories260K-greedy.jsonl", encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        text = self.folder / "text"
        text.write_text("\n".join("".join(pieces[token] for token in line["prompt"][1:] + line["tokens"]) for line in lines))
        all_found = self.compare_all("stories260K", text, lambda path, blocks: stories260k.write(path, True, blocks))
        layers, width = config["num_hidden_layers"], config["hidden_size"]
        largest = max(max(line["sums"]) for line in lines)
        # An element in bf16 is off by 2^-9 of itself. An integer is off by 1/65534 of the largest of 32 elements, which is at
        # most sqrt(32) times their mean.
        units = {"weights in bf16": 2**-9, "caches in bf16": 2**-9, "weights in blocks": math.sqrt(32) / 65534}
        for (kind, way, rows), found in all_found.items():
            if way in units:
                # The errors of the `width` products of a logit, and those of the products before, are independent, so that their
                # squares add up. D(p || q) is half the mean square of the errors added to logits.
                bound = (2 * layers + 1) * units[way]**2 * largest**2 / width
                self.assertLess(abs(found["mean"]), bound, (kind, way, rows))


if __name__ == "__main__":
    tools.main()
