#!/usr/bin/env python3
"""Trains with PyTorch on the CPU, eagerly or with torch.compile, and writes a metrics line after each step.

Written as one who wants speed would: fused attention, norms and AdamW, gradients dropped and not zeroed, multi-tensor
clipping, and, for bf16, autocast over float32 parameters. With --mode compile, the loss with its cross entropy is one
compiled function.
"""

import torch
import torch.nn.functional as F

import loop


def rotate(x, cos, sin):
    """Rotates the pairs (i, i + D/2) of x [B, H, S, D]; cos and sin are [S, D/2]."""
    low, high = x.chunk(2, dim=-1)
    cos, sin = cos.to(x.dtype), sin.to(x.dtype)
    return torch.cat([low * cos - high * sin, high * cos + low * sin], dim=-1)


def attend(q, k, v):
    """[B, H, S, D] each, k and v with the same or fewer heads; [B, S, H * D]."""
    result = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=q.shape[1] != k.shape[1])
    return result.transpose(1, 2).flatten(2)


def llama_logits(config, weights, tokens):
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    hidden, eps = config["hidden_size"], config["rms_norm_eps"]
    head_dim = hidden // heads
    batch, length = tokens.shape
    frequencies = config["rope_theta"] ** (-torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim)
    angles = torch.outer(torch.arange(length, dtype=torch.float32), frequencies)
    cos, sin = angles.cos(), angles.sin()

    def split(x, count):
        return x.view(batch, length, count, head_dim).transpose(1, 2)

    x = F.embedding(tokens, weights["model.embed_tokens.weight"])
    for i in range(config["num_hidden_layers"]):
        layer = f"model.layers.{i}."
        y = F.rms_norm(x, (hidden,), weights[layer + "input_layernorm.weight"], eps)
        q = rotate(split(F.linear(y, weights[layer + "self_attn.q_proj.weight"]), heads), cos, sin)
        k = rotate(split(F.linear(y, weights[layer + "self_attn.k_proj.weight"]), kv_heads), cos, sin)
        v = split(F.linear(y, weights[layer + "self_attn.v_proj.weight"]), kv_heads)
        x = x + F.linear(attend(q, k, v), weights[layer + "self_attn.o_proj.weight"])
        y = F.rms_norm(x, (hidden,), weights[layer + "post_attention_layernorm.weight"], eps)
        gate = F.silu(F.linear(y, weights[layer + "mlp.gate_proj.weight"]))
        gated = gate * F.linear(y, weights[layer + "mlp.up_proj.weight"])
        x = x + F.linear(gated, weights[layer + "mlp.down_proj.weight"])
    x = F.rms_norm(x, (hidden,), weights["model.norm.weight"], eps)
    head = "model.embed_tokens.weight" if config["tie_word_embeddings"] else "lm_head.weight"
    return F.linear(x, weights[head])


def gpt2_logits(config, weights, tokens):
    heads, hidden = config["n_head"], config["n_embd"]
    batch, length = tokens.shape

    def norm(x, name):
        return F.layer_norm(x, (hidden,), weights[name + ".weight"], weights[name + ".bias"],
                            config["layer_norm_epsilon"])

    def project(x, name):
        w = weights[name + ".weight"]
        return torch.addmm(weights[name + ".bias"], x.reshape(-1, w.shape[0]), w).view(batch, length, w.shape[1])

    def split(x):
        return x.view(batch, length, heads, hidden // heads).transpose(1, 2)

    x = F.embedding(tokens, weights["transformer.wte.weight"]) + weights["transformer.wpe.weight"][:length]
    for i in range(config["n_layer"]):
        layer = f"transformer.h.{i}."
        q, k, v = project(norm(x, layer + "ln_1"), layer + "attn.c_attn").split(hidden, dim=2)
        x = x + project(attend(split(q), split(k), split(v)), layer + "attn.c_proj")
        y = F.gelu(project(norm(x, layer + "ln_2"), layer + "mlp.c_fc"), approximate="tanh")
        x = x + project(y, layer + "mlp.c_proj")
    return F.linear(norm(x, "transformer.ln_f"), weights["transformer.wte.weight"])


def main():
    options = loop.parse(__doc__.splitlines()[0], mode=("eager", "compile"))
    torch.set_num_threads(options.threads)
    config = loop.read_config(options.model)
    logits = gpt2_logits if config["model_type"] == "gpt2" else llama_logits
    weights = {name: torch.from_numpy(value).requires_grad_(True)
               for name, value in loop.read_weights(options.model).items()}

    def loss_of(tokens, labels):
        with torch.autocast("cpu", torch.bfloat16, enabled=options.dtype == "bf16"):
            predictions = logits(config, weights, tokens)
        return F.cross_entropy(predictions.float().flatten(0, 1), labels.flatten())

    if options.mode == "compile":
        loss_of = torch.compile(loss_of)
    groups = [{"params": [w for w in weights.values() if w.dim() >= 2], "weight_decay": options.weight_decay},
              {"params": [w for w in weights.values() if w.dim() < 2], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=options.lr, betas=(options.beta1, options.beta2), eps=options.eps,
                                  fused=True)
    parameters = list(weights.values())
    with open(options.metrics, "w", encoding="utf-8") as file:
        for step, (inputs, labels) in enumerate(loop.batches(options), 1):
            optimizer.zero_grad(set_to_none=True)
            loss = loss_of(torch.from_numpy(inputs).long(), torch.from_numpy(labels).long())
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(parameters, options.clip_norm, foreach=True)
            optimizer.step()
            loop.report(file, step, loss.item(), norm.item())


if __name__ == "__main__":
    main()
