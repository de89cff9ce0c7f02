#!/usr/bin/env python3
"""Records the greedy tokens of two models, computed in f64 by models.py, which shares no code with Bowline.

  oracle-venv/bin/python test/oracle/make_greedy.py    # test/oracle/*-greedy.jsonl

A line is a prompt: `prompt` and `tokens`, the ids; `gaps`, by how much the best logit exceeds the next one, of each
token; `sums`, the largest sum of the magnitudes of the products that a logit of the two consists of. `make check` compares
with the recorded files. stories260K is not in this repository (test/Execution/stories260k.py says where it is looked for)."""

import json
import pathlib
import random
import sys

import torch

import make_oracle
import models

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "Execution"))

import stories260k  # noqa: E402

NEW_TOKENS = 32
# Subjects of the stories that the model was trained on, so that prompts are of the same kind.
NAMES = ["Lily", "Tom", "Mia", "Ben", "Sue", "Max", "Anna", "Tim", "Sara", "Sam"]
BEGINNINGS = ["Once upon a time, there was a little girl named {}.", "{} had a red ball.", "One day, {} went to the park.",
              "{} and the dog", "It was raining, and {} wanted to play outside. The sun was gone. But then"]


def encode(pieces, text):
    """The ids of a text: letters are joined into the pieces of the best scores, as SentencePiece does."""
    ids = {piece: index for index, (piece, _) in enumerate(pieces)}
    tokens = [ids[letter] for letter in " " + text]
    while True:
        joined = [(pieces[ids[text]][1], -i, ids[text]) for i, text in
                  ((i, pieces[tokens[i]][0] + pieces[tokens[i + 1]][0]) for i in range(len(tokens) - 1)) if text in ids]
        if not joined:
            return [1, *tokens]
        _, at, token = max(joined)
        tokens[-at:2 - at] = [token]


def continue_greedily(config, weights, prompt):
    """The line of a prompt."""
    head = weights["model.embed_tokens.weight" if config["tie_word_embeddings"] else "lm_head.weight"]
    wide = {**weights, "lm_head.weight": torch.eye(config["hidden_size"], dtype=torch.float64)}
    tokens, gaps, sums = list(prompt), [], []
    for _ in range(NEW_TOKENS):
        # The head in models.py is the identity, so that the hidden values that it multiplies are known.
        hidden = models.logits({**config, "tie_word_embeddings": False}, wide, torch.tensor([tokens]))[0, -1]
        best = torch.topk(head @ hidden, 2)
        gaps.append(float(best.values[0] - best.values[1]))
        sums.append(float((head[best.indices] * hidden).abs().sum(1).max()))
        tokens.append(int(best.indices[0]))
    return {"prompt": prompt, "tokens": tokens[len(prompt):], "gaps": [float(f"{gap:.4g}") for gap in gaps],
            "sums": [float(f"{size:.4g}") for size in sums]}


def record(name, config, weights, prompts):
    weights = {key: value.double() for key, value in weights.items()}
    lines = [continue_greedily(config, weights, prompt) for prompt in prompts]
    (HERE / f"{name}-greedy.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    print(name, len(lines), "prompts; the smallest gap is", min(min(line["gaps"]) for line in lines))


def main():
    torch.set_num_threads(1)  # matrices are too small for more
    config = make_oracle.read_config("llama-tiny")
    source = random.Random(1)
    prompts = [[source.randrange(256) for _ in range(source.randint(1, 30))] for _ in range(12)]
    record("llama-tiny", config, make_oracle.read_safetensors(make_oracle.MODELS / "llama-tiny/model.safetensors"), prompts)
    config, tensors = stories260k.read_model()
    weights = {key: torch.tensor(values).reshape(shape) for key, shape, values in tensors}
    pieces = list(stories260k.read_tokens(config["vocab_size"]))
    record("stories260K", config, weights, [encode(pieces, text.format(name)) for text in BEGINNINGS for name in NAMES])


if __name__ == "__main__":
    main()
