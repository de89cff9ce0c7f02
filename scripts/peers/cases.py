"""Measured cases: models, element types, candidates, and the settings that all of them share."""

import json
import pathlib
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]

GPT2_124M = {
    "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "activation_function": "gelu_new", "n_embd": 768,
    "n_head": 12, "n_layer": 12, "n_inner": None, "n_positions": 1024, "n_ctx": 1024, "vocab_size": 50257,
    "layer_norm_epsilon": 1e-5, "initializer_range": 0.02, "attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0,
}
LLAMA_160M = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "hidden_size": 768,
    "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12, "num_key_value_heads": 12,
    "vocab_size": 32000, "max_position_embeddings": 2048, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
    "initializer_range": 0.02, "tie_word_embeddings": False, "attention_bias": False, "mlp_bias": False,
}


class Model(NamedTuple):
    title: str
    config: dict  # config.json of a Hugging Face directory
    batch: int
    seq: int
    # Bowline's flag: `selective` where activations take much of its memory. The demo takes 2 to 4 % longer with it.
    recompute: str


def models():
    """Name on the command line -> Model."""
    demo = json.loads((ROOT / "examples/demo/config.json").read_text(encoding="utf-8"))
    return {"demo": Model("demo Llama", demo, 8, 256, "none"),
            "gpt2": Model("GPT-2 124M", GPT2_124M, 2, 512, "none"),
            "llama-160m": Model("Llama 160M", LLAMA_160M, 1, 1024, "selective")}


DTYPES = ("f32", "bf16")
CANDIDATES = {"bowline": "Bowline", "eager": "PyTorch eager", "compile": "torch.compile", "jax": "jax.jit"}

# The optimizer of every candidate. Weight decay is for tensors of rank two and more.
OPTIMIZER = {"lr": 3e-4, "beta1": 0.9, "beta2": 0.95, "eps": 1e-8, "weight-decay": 0.1, "clip-norm": 1.0}
# PyTorch's tensors come from malloc. Memory that it keeps, instead of returning it to the system and having it cleared
# again, makes a step about 5 % faster, for 3 % more memory.
TORCH_ENVIRONMENT = {"GLIBC_TUNABLES": "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=68719476736:"
                                       "glibc.malloc.top_pad=268435456"}
# Batches in the data, which every candidate reads in order and, at the end, from the start again.
BATCHES = 16
# Random weights, and the same with sharp attention (scripts/sharp_weights.py).
WEIGHTS = ("flat", "sharp")
# Losses and gradient norms of so many steps are compared, by these relative differences. With sharp attention, an update
# depends on the last bit of the values from which it is computed.
COMPARED_STEPS = {"flat": 5, "sharp": 1}
LOSS_TOLERANCE = {"f32": 1e-3, "bf16": 2e-2}
