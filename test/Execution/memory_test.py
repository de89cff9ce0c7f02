#!/usr/bin/env python3
"""Arenas of a large model's training plans are what docs/memory.md says that each strategy takes."""

import json

import tools

# The shape of Llama 2 7B (Touvron et al., 2023).
HIDDEN, INNER, LAYERS, VOCABULARY = 4096, 11008, 32, 32000
CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": HIDDEN,
          "intermediate_size": INNER, "num_hidden_layers": LAYERS, "num_attention_heads": 32,
          "num_key_value_heads": 32, "vocab_size": VOCABULARY, "max_position_embeddings": 4096, "hidden_act": "silu",
          "rms_norm_eps": 1e-05, "tie_word_embeddings": False, "bos_token_id": 1, "eos_token_id": 2}

RANKS, TOKENS = 64, 2048  # tokens of one rank

TABLE = VOCABULARY * HIDDEN
MATRICES = 4 * HIDDEN * HIDDEN + 3 * HIDDEN * INNER  # of one layer
NORMS = (2 * LAYERS + 1) * HIDDEN
PARAMETERS = 2 * TABLE + LAYERS * MATRICES + NORMS

# Workspace of products, masks, tables of angles and what packing leaves over.
MORE, LESS = 1.03, 0.85

GIB = 1 << 30


def held(zero, wide):
    """Weights, gradients and the two moments of AdamW between steps, in bytes."""
    if zero == 0:
        return 16 * PARAMETERS
    if zero == 3:
        return 12 * PARAMETERS // RANKS
    # Gradients are scattered as soon as they are there. In bf16 the matrices are rounded copies and shards.
    whole = 4 * PARAMETERS if wide else 2 * (PARAMETERS - TABLE - NORMS) + 4 * (TABLE + NORMS)
    return whole + (8 if wide else 12) * PARAMETERS // RANKS


def activations(recompute, wide):
    """What one layer keeps for its backward pass, in bytes."""
    size = 4 if wide else 2
    stream = 2 * 4 * TOKENS * HIDDEN  # the residual stream in front of both blocks
    if recompute == "full":
        return stream // 2
    products = size * TOKENS * (4 * HIDDEN + 2 * INNER)  # queries, keys, values, attention, both inner products
    cheap = size * TOKENS * (2 * HIDDEN + INNER)  # both norms and SwiGLU
    if recompute == "selective":
        return stream + products + (0 if wide else cheap - size * TOKENS * HIDDEN)
    return stream + products + cheap


def predicted(zero, recompute, wide, prefetch):
    size = 4 if wide else 2
    kept = LAYERS * activations(recompute, wide)
    # The head has its gradient, in f32 also those of three tiles of the loss; in bf16 the loss is one tile.
    loss = (3 * 4 * TABLE if wide else 4 * TABLE + 6 * TOKENS * VOCABULARY) + (size * TABLE if zero == 3 else 0)
    # A layer with the gradients of its values, the matrices that are gathered, and gradients that wait to be scattered:
    # with ZeRO 3 fewer, as the gathers behind them are waited for.
    layer = 2 * activations("none", wide) if recompute == "full" else 0
    gathered = size * (MATRICES + prefetch * HIDDEN * INNER) if zero == 3 else 0
    waiting = (1 if zero == 3 else 2) * 4 * TABLE + 4 * HIDDEN * INNER if zero > 0 else 0
    return held(zero, wide) + kept + max(loss, layer + gathered + waiting if recompute == "full" else 0)


class Memory(tools.ToolTest):
    def arena(self, *flags):
        model, plan = self.folder / "llama", self.folder / "x.plan"
        model.mkdir(exist_ok=True)
        (model / "config.json").write_text(json.dumps(CONFIG))
        tools.succeed("bowline-compile", model, "--mode", "train", "--batch", RANKS, "--seq", TOKENS, "--mesh",
                      f"dp={RANKS}", *flags, *tools.ONE_THREAD, "--no-codegen", "-o", plan)
        return json.loads(tools.succeed("bowline-inspect", plan, "--json"))["header"]["arena_bytes"]

    def compare(self, zero, recompute, dtype, prefetch=1):
        flags = ["--zero", zero, "--recompute", recompute, "--dtype", dtype]
        if zero == 3:
            flags += ["--prefetch", prefetch]
        with self.subTest(zero=zero, recompute=recompute, dtype=dtype, prefetch=prefetch):
            arena, formula = self.arena(*flags), predicted(zero, recompute, dtype == "f32", prefetch)
            print(f"zero {zero} {recompute} {dtype} prefetch {prefetch}: {arena / GIB:.2f} of {formula / GIB:.2f} GiB")
            self.assertLessEqual(arena, MORE * formula)
            self.assertGreaterEqual(arena, LESS * formula)
            return arena

    def test_parameters_are_gathered_a_layer_at_a_time(self):
        for dtype in ("f32", "bf16"):
            ahead = [self.compare(3, "none", dtype, prefetch) for prefetch in (0, 2)]
            # No more than two matrices wait for their use.
            self.assertLessEqual(ahead[1] - ahead[0], 2 * (4 if dtype == "f32" else 2) * HIDDEN * INNER)

    def test_what_is_computed_again_is_not_kept(self):
        for zero in (1, 2, 3):
            for dtype in ("f32", "bf16"):
                self.compare(zero, "full", dtype)
        for dtype in ("f32", "bf16"):
            self.compare(3, "selective", dtype)

    def test_gradients_are_scattered_as_they_come(self):
        for zero in (1, 2):
            for dtype in ("f32", "bf16"):
                self.compare(zero, "none", dtype)

    def test_copies_take_sixteen_bytes_for_each_parameter(self):
        arena = self.arena("--dtype", "f32")
        self.assertLessEqual(arena, MORE * held(0, True))
        self.assertGreaterEqual(arena, held(0, True))


if __name__ == "__main__":
    tools.main()
