"""The families in plain float PyTorch, written from their papers and for clarity.

Weights are a dict from Hugging Face tensor names to tensors. `logits(config, weights, tokens)` maps ids [B, S] to
logits [B, S, V]. Attention is the textbook formula with the whole score matrix.
"""

import math

import torch
import torch.nn.functional as F


def weight_shapes(config):
    """Name -> shape of every parameter."""
    return (gpt2_shapes if config["model_type"] == "gpt2" else llama_shapes)(config)


def logits(config, weights, tokens):
    return (gpt2_logits if config["model_type"] == "gpt2" else llama_logits)(config, weights, tokens)


def causal_attention(q, k, v, window=None):
    """q [B, H, S, D], k and v [B, H, S, D]; each position sees itself and the window - 1 before it."""
    length = q.shape[2]
    scores = q @ k.transpose(2, 3) / math.sqrt(q.shape[3])
    hidden = torch.ones(length, length, dtype=torch.bool).triu(1)
    if window is not None:
        distance = torch.arange(length)[:, None] - torch.arange(length)
        hidden |= distance >= window
    return torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1) @ v


# Llama, Mistral, Qwen2 and Qwen3 --------------------------------------------------------------------------------------


def llama_sizes(config):
    heads = config["num_attention_heads"]
    kv_heads = config.get("num_key_value_heads", heads)
    return heads, kv_heads, config.get("head_dim") or config["hidden_size"] // heads


def llama_shapes(config):
    heads, kv_heads, head_dim = llama_sizes(config)
    hidden, ffn, vocab = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    shapes = {"model.embed_tokens.weight": (vocab, hidden)}
    for i in range(config["num_hidden_layers"]):
        layer = f"model.layers.{i}."
        shapes[layer + "input_layernorm.weight"] = (hidden,)
        for name, count in (("q", heads), ("k", kv_heads), ("v", kv_heads)):
            shapes[layer + f"self_attn.{name}_proj.weight"] = (count * head_dim, hidden)
            if config["model_type"] == "qwen2":
                shapes[layer + f"self_attn.{name}_proj.bias"] = (count * head_dim,)
            if config["model_type"] == "qwen3" and name != "v":
                shapes[layer + f"self_attn.{name}_norm.weight"] = (head_dim,)
        shapes[layer + "self_attn.o_proj.weight"] = (hidden, heads * head_dim)
        shapes[layer + "post_attention_layernorm.weight"] = (hidden,)
        shapes[layer + "mlp.gate_proj.weight"] = (ffn, hidden)
        shapes[layer + "mlp.up_proj.weight"] = (ffn, hidden)
        shapes[layer + "mlp.down_proj.weight"] = (hidden, ffn)
    shapes["model.norm.weight"] = (hidden,)
    if not config.get("tie_word_embeddings", False):
        shapes["lm_head.weight"] = (vocab, hidden)
    return shapes


def rms_norm(x, scale, eps):
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps) * scale


def scaled_frequencies(frequencies, scaling):
    """`linear` divides all frequencies. `llama3` divides those of long waves, keeps short ones, and blends in between."""
    kind = scaling.get("rope_type", "default")
    if kind == "default":
        return frequencies
    divided = frequencies / scaling["factor"]
    if kind == "linear":
        return divided
    assert kind == "llama3"
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    waves = 2 * math.pi / frequencies
    original = scaling["original_max_position_embeddings"]
    smooth = (original / waves - low) / (high - low)
    blended = (1 - smooth) * divided + smooth * frequencies
    return torch.where(waves < original / high, frequencies, torch.where(waves > original / low, divided, blended))


def rope(x, theta, scaling):
    """Rotates the pairs (i, i + D/2) of x [B, H, S, D] by position * theta^(-2i/D), scaled."""
    length, half = x.shape[2], x.shape[3] // 2
    frequencies = scaled_frequencies(theta ** (-torch.arange(half, dtype=torch.float64) / half), scaling)
    angles = torch.arange(length, dtype=torch.float64)[:, None] * frequencies
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    low, high = x[..., :half], x[..., half:]
    return torch.cat([low * cos - high * sin, high * cos + low * sin], dim=-1)


def llama_logits(config, weights, tokens):
    heads, kv_heads, head_dim = llama_sizes(config)
    eps = config["rms_norm_eps"]
    scaling = config.get("rope_parameters") or config.get("rope_scaling") or {}
    theta = scaling.get("rope_theta") or config["rope_theta"]
    # Other families have the key too, and do not use it.
    window = config["sliding_window"] if config["model_type"] == "mistral" else None
    batch, length = tokens.shape

    def project(x, name):
        return F.linear(x, weights[name + ".weight"], weights.get(name + ".bias"))

    def split(x, count):
        return x.view(batch, length, count, head_dim).transpose(1, 2)

    x = weights["model.embed_tokens.weight"][tokens]
    for i in range(config["num_hidden_layers"]):
        layer = f"model.layers.{i}."
        y = rms_norm(x, weights[layer + "input_layernorm.weight"], eps)
        q = split(project(y, layer + "self_attn.q_proj"), heads)
        k = split(project(y, layer + "self_attn.k_proj"), kv_heads)
        if config["model_type"] == "qwen3":
            q = rms_norm(q, weights[layer + "self_attn.q_norm.weight"], eps)
            k = rms_norm(k, weights[layer + "self_attn.k_norm.weight"], eps)
        q, k = rope(q, theta, scaling), rope(k, theta, scaling)
        v = split(project(y, layer + "self_attn.v_proj"), kv_heads)
        group = heads // kv_heads
        attended = causal_attention(q, k.repeat_interleave(group, 1), v.repeat_interleave(group, 1), window)
        attended = attended.transpose(1, 2).reshape(batch, length, heads * head_dim)
        x = x + project(attended, layer + "self_attn.o_proj")
        y = rms_norm(x, weights[layer + "post_attention_layernorm.weight"], eps)
        gated = F.silu(project(y, layer + "mlp.gate_proj")) * project(y, layer + "mlp.up_proj")
        x = x + project(gated, layer + "mlp.down_proj")
    x = rms_norm(x, weights["model.norm.weight"], eps)
    head = "model.embed_tokens.weight" if config.get("tie_word_embeddings", False) else "lm_head.weight"
    return x @ weights[head].T


# GPT-2 ----------------------------------------------------------------------------------------------------------------


def gpt2_shapes(config):
    hidden, ffn = config["n_embd"], config["n_inner"] or 4 * config["n_embd"]
    shapes = {"transformer.wte.weight": (config["vocab_size"], hidden),
              "transformer.wpe.weight": (config["n_positions"], hidden)}
    for i in range(config["n_layer"]):
        for name, shape in (("ln_1", (hidden,)), ("attn.c_attn", (hidden, 3 * hidden)),
                            ("attn.c_proj", (hidden, hidden)), ("ln_2", (hidden,)),
                            ("mlp.c_fc", (hidden, ffn)), ("mlp.c_proj", (ffn, hidden))):
            shapes[f"transformer.h.{i}.{name}.weight"] = shape
            shapes[f"transformer.h.{i}.{name}.bias"] = (shape[-1],)
    shapes["transformer.ln_f.weight"] = shapes["transformer.ln_f.bias"] = (hidden,)
    return shapes


def layer_norm(x, scale, bias, eps):
    centred = x - x.mean(-1, keepdim=True)
    return centred / torch.sqrt((centred * centred).mean(-1, keepdim=True) + eps) * scale + bias


def gelu_new(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def gpt2_logits(config, weights, tokens):
    heads, hidden = config["n_head"], config["n_embd"]
    batch, length = tokens.shape

    def norm(x, name):
        return layer_norm(x, weights[name + ".weight"], weights[name + ".bias"], config["layer_norm_epsilon"])

    def project(x, name):
        return x @ weights[name + ".weight"] + weights[name + ".bias"]

    def split(x):
        return x.reshape(batch, length, heads, hidden // heads).transpose(1, 2)

    x = weights["transformer.wte.weight"][tokens] + weights["transformer.wpe.weight"][:length]
    for i in range(config["n_layer"]):
        layer = f"transformer.h.{i}."
        q, k, v = project(norm(x, layer + "ln_1"), layer + "attn.c_attn").split(hidden, dim=2)
        attended = causal_attention(split(q), split(k), split(v))
        x = x + project(attended.transpose(1, 2).reshape(batch, length, hidden), layer + "attn.c_proj")
        x = x + project(gelu_new(project(norm(x, layer + "ln_2"), layer + "mlp.c_fc")), layer + "mlp.c_proj")
    return norm(x, "transformer.ln_f") @ weights["transformer.wte.weight"].T
