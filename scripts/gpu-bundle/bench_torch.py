"""Trains a model of a config.json in PyTorch as its users do: torch.compile, scaled_dot_product_attention, fused AdamW,
bf16 autocast over f32 weights. Prints one JSON line with the median step.

  bench_torch.py CONFIG.json --batch N --seq N [--steps N]
"""

import argparse
import json
import statistics
import time

import torch
import torch.nn.functional as F
from torch import nn


class Gpt2Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        width = c["n_embd"]
        self.heads = c["n_head"]
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, seq, width = x.shape
        q, k, v = (part.view(batch, seq, self.heads, -1).transpose(1, 2)
                   for part in self.qkv(self.norm1(x)).split(width, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, seq, width))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    def __init__(self, c):
        super().__init__()
        width = c["n_embd"]
        self.tokens, self.positions = nn.Embedding(c["vocab_size"], width), nn.Embedding(c["n_positions"], width)
        self.blocks = nn.ModuleList(Gpt2Block(c) for _ in range(c["n_layer"]))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, c["vocab_size"], bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, ids, labels):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), labels.flatten())


class LlamaBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        width, inner, size = c["hidden_size"], c["intermediate_size"], c["head_dim"]
        self.heads, self.kv_heads, self.size = c["num_attention_heads"], c["num_key_value_heads"], size
        self.norm1, self.norm2 = (nn.RMSNorm(width, eps=c["rms_norm_eps"]) for _ in range(2))
        self.q = nn.Linear(width, self.heads * size, bias=False)
        self.k, self.v = (nn.Linear(width, self.kv_heads * size, bias=False) for _ in range(2))
        self.out = nn.Linear(self.heads * size, width, bias=False)
        self.gate, self.up = (nn.Linear(width, inner, bias=False) for _ in range(2))
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x, cos, sin):
        batch, seq, width = x.shape
        h = self.norm1(x)

        def split(y, heads):
            return y.view(batch, seq, heads, self.size).transpose(1, 2)

        def rotate(y):
            low, high = y.chunk(2, -1)
            return y * cos + torch.cat((-high, low), -1) * sin

        q, k, v = split(self.q(h), self.heads), split(self.k(h), self.kv_heads), split(self.v(h), self.kv_heads)
        q, k = rotate(q).to(v.dtype), rotate(k).to(v.dtype)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, seq, -1))
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Llama(nn.Module):
    def __init__(self, c):
        super().__init__()
        width, size = c["hidden_size"], c["head_dim"]
        self.tokens = nn.Embedding(c["vocab_size"], width)
        self.blocks = nn.ModuleList(LlamaBlock(c) for _ in range(c["num_hidden_layers"]))
        self.norm = nn.RMSNorm(width, eps=c["rms_norm_eps"])
        self.head = nn.Linear(width, c["vocab_size"], bias=False)
        if c["tie_word_embeddings"]:
            self.head.weight = self.tokens.weight
        self.register_buffer("rates", c["rope_theta"] ** (-torch.arange(0, size, 2).float() / size))

    def forward(self, ids, labels):
        angles = torch.arange(ids.shape[1], device=ids.device).float()[:, None] * self.rates
        angles = torch.cat((angles, angles), -1)
        cos, sin = angles.cos(), angles.sin()
        x = self.tokens(ids)
        for block in self.blocks:
            x = block(x, cos, sin)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), labels.flatten())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("config")
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--seq", type=int, required=True)
    parser.add_argument("--steps", type=int, default=20)
    args = parser.parse_args()
    with open(args.config, encoding="utf-8") as file:
        config = json.load(file)
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    with torch.device("cuda"):
        model = {"gpt2": Gpt2, "llama": Llama}[config["model_type"]](config)
    for weight in model.parameters():
        if weight.dim() > 1:
            nn.init.normal_(weight, std=0.02)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    compiled = torch.compile(model)
    data = [torch.randint(0, 50000, (args.batch, args.seq + 1), device="cuda") for _ in range(8)]

    def step(number):
        ids = data[number % len(data)]
        with torch.autocast("cuda", torch.bfloat16):
            loss = compiled(ids[:, :-1].contiguous(), ids[:, 1:].contiguous())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    began = time.time()
    for number in range(5):
        step(number)
    torch.cuda.synchronize()
    warmup = time.time() - began
    times = []
    for number in range(args.steps):
        begin = time.perf_counter()
        step(number)
        torch.cuda.synchronize()
        times.append((time.perf_counter() - begin) * 1e3)
    print(json.dumps({"step_ms": statistics.median(times), "warmup_s": warmup,
                      "peak_gib": torch.cuda.max_memory_allocated() / 2**30}))


if __name__ == "__main__":
    main()
