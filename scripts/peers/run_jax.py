#!/usr/bin/env python3
"""Trains with JAX on the CPU and writes a metrics line after each step.

The whole step is one jitted function whose parameters and moments are donated. For bf16, it casts the float32
parameters first; statistics, logits and the optimizer stay float32.
"""

import functools
import math

import jax
import jax.numpy as jnp

import loop


def rotate(x, cos, sin):
    """Rotates the pairs (i, i + D/2) of x [B, S, H, D]; cos and sin are [S, 1, D/2]."""
    low, high = jnp.split(x, 2, axis=-1)
    cos, sin = cos.astype(x.dtype), sin.astype(x.dtype)
    return jnp.concatenate([low * cos - high * sin, high * cos + low * sin], axis=-1)


def attend(q, k, v, kind):
    """[B, S, H, D] each, k and v with the same or fewer heads; [B, S, H * D]."""
    batch, length, heads, width = q.shape
    if kind == "library":
        result = jax.nn.dot_product_attention(q, k, v, is_causal=True)
    else:
        k, v = (jnp.repeat(x, heads // x.shape[2], axis=2) for x in (k, v))
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k, preferred_element_type=jnp.float32) / math.sqrt(width)
        scores = jnp.where(jnp.tri(length, dtype=bool), scores, -jnp.inf)
        result = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, axis=-1).astype(q.dtype), v)
    return result.reshape(batch, length, heads * width)


def rms_norm(x, scale, eps):
    wide = x.astype(jnp.float32)
    normal = wide * jax.lax.rsqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + eps)
    return normal.astype(x.dtype) * scale


def layer_norm(x, scale, bias, eps):
    wide = x.astype(jnp.float32)
    centred = wide - jnp.mean(wide, axis=-1, keepdims=True)
    normal = centred * jax.lax.rsqrt(jnp.mean(centred * centred, axis=-1, keepdims=True) + eps)
    return normal.astype(x.dtype) * scale + bias


def llama_logits(config, weights, tokens, kind):
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    head_dim, eps = config["hidden_size"] // heads, config["rms_norm_eps"]
    batch, length = tokens.shape
    frequencies = config["rope_theta"] ** (-jnp.arange(0, head_dim, 2, dtype=jnp.float32) / head_dim)
    angles = jnp.outer(jnp.arange(length, dtype=jnp.float32), frequencies)[:, None, :]
    cos, sin = jnp.cos(angles), jnp.sin(angles)

    def split(x, count):
        return x.reshape(batch, length, count, head_dim)

    x = weights["model.embed_tokens.weight"][tokens]
    for i in range(config["num_hidden_layers"]):
        layer = f"model.layers.{i}."
        y = rms_norm(x, weights[layer + "input_layernorm.weight"], eps)
        q = rotate(split(y @ weights[layer + "self_attn.q_proj.weight"].T, heads), cos, sin)
        k = rotate(split(y @ weights[layer + "self_attn.k_proj.weight"].T, kv_heads), cos, sin)
        v = split(y @ weights[layer + "self_attn.v_proj.weight"].T, kv_heads)
        x = x + attend(q, k, v, kind) @ weights[layer + "self_attn.o_proj.weight"].T
        y = rms_norm(x, weights[layer + "post_attention_layernorm.weight"], eps)
        gate = jax.nn.silu(y @ weights[layer + "mlp.gate_proj.weight"].T)
        x = x + (gate * (y @ weights[layer + "mlp.up_proj.weight"].T)) @ weights[layer + "mlp.down_proj.weight"].T
    x = rms_norm(x, weights["model.norm.weight"], eps)
    head = "model.embed_tokens.weight" if config["tie_word_embeddings"] else "lm_head.weight"
    return x @ weights[head].T


def gpt2_logits(config, weights, tokens, kind):
    heads, hidden = config["n_head"], config["n_embd"]
    batch, length = tokens.shape

    def norm(x, name):
        return layer_norm(x, weights[name + ".weight"], weights[name + ".bias"], config["layer_norm_epsilon"])

    def project(x, name):
        return x @ weights[name + ".weight"] + weights[name + ".bias"]

    def split(x):
        return x.reshape(batch, length, heads, hidden // heads)

    x = weights["transformer.wte.weight"][tokens] + weights["transformer.wpe.weight"][:length]
    for i in range(config["n_layer"]):
        layer = f"transformer.h.{i}."
        q, k, v = jnp.split(project(norm(x, layer + "ln_1"), layer + "attn.c_attn"), 3, axis=2)
        x = x + project(attend(split(q), split(k), split(v), kind), layer + "attn.c_proj")
        y = jax.nn.gelu(project(norm(x, layer + "ln_2"), layer + "mlp.c_fc"), approximate=True)
        x = x + project(y, layer + "mlp.c_proj")
    return norm(x, "transformer.ln_f") @ weights["transformer.wte.weight"].T


def make_step(config, options):
    logits = gpt2_logits if config["model_type"] == "gpt2" else llama_logits
    dtype = jnp.bfloat16 if options.dtype == "bf16" else jnp.float32

    def loss_of(weights, tokens, labels):
        predictions = logits(config, {name: w.astype(dtype) for name, w in weights.items()}, tokens, options.attention)
        predictions = predictions.astype(jnp.float32)
        right = jnp.take_along_axis(predictions, labels[..., None], axis=-1)[..., 0]
        return jnp.mean(jax.nn.logsumexp(predictions, axis=-1) - right)

    @functools.partial(jax.jit, donate_argnums=(0, 1, 2))
    def train(weights, first, second, step, tokens, labels):
        loss, gradients = jax.value_and_grad(loss_of)(weights, tokens, labels)
        norm = jnp.sqrt(sum(jnp.sum(g * g) for g in gradients.values()))
        scale = jnp.minimum(1.0, options.clip_norm / (norm + 1e-6))
        new_weights, new_first, new_second = {}, {}, {}
        for name, w in weights.items():
            g = gradients[name] * scale
            m = options.beta1 * first[name] + (1 - options.beta1) * g
            v = options.beta2 * second[name] + (1 - options.beta2) * g * g
            update = (m / (1 - options.beta1**step)) / (jnp.sqrt(v / (1 - options.beta2**step)) + options.eps)
            decay = options.weight_decay if w.ndim >= 2 else 0.0
            new_weights[name] = w * (1 - options.lr * decay) - options.lr * update
            new_first[name], new_second[name] = m, v
        return new_weights, new_first, new_second, loss, norm

    return train


def main():
    options = loop.parse(__doc__.splitlines()[0], attention=("library", "plain"))
    config = loop.read_config(options.model)
    weights = {name: jnp.array(value, copy=True) for name, value in loop.read_weights(options.model).items()}
    first = {name: jnp.zeros_like(w) for name, w in weights.items()}
    second = {name: jnp.zeros_like(w) for name, w in weights.items()}
    train = make_step(config, options)
    with open(options.metrics, "w", encoding="utf-8") as file:
        for step, (inputs, labels) in enumerate(loop.batches(options), 1):
            result = train(weights, first, second, jnp.float32(step), inputs, labels)
            weights, first, second, loss, norm = jax.block_until_ready(result)
            loop.report(file, step, float(loss), float(norm))


if __name__ == "__main__":
    main()
