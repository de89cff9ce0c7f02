#!/usr/bin/env python3
"""Compares bowline-serve's greedy tokens of a GGUF file with those of Hugging Face's transformers, which decodes the same
weights to f32: 32 tokens behind each of 50 prompts, with the blocks of the file, and with the weights decoded.

  python3 -m venv peer && peer/bin/pip install torch transformers gguf
  peer/bin/python scripts/compare-greedy.py MODEL.gguf [--build-dir DIR]

It prints how many prompts have the same tokens, and of the others the first token that differs with the distance of the two
best logits there."""

import argparse
import http.client
import json
import pathlib
import re
import signal
import subprocess
import tempfile

import torch
import transformers

ROOT = pathlib.Path(__file__).resolve().parent.parent
NEW_TOKENS = 32
SUBJECTS = ["a rope", "the sea", "a small boat", "the weather", "bread", "a bridge", "the moon", "a good friend", "music", "time"]
FORMS = ["{} is", "The first thing to know about {} is that", "Q: How would you describe {} to a child?\nA:",
         "In the year 1850 they wrote a letter about {}:", "def test():\n    # about {}\n"]


def expect(model, prompt):
    """The greedy tokens, and the distance of the two best logits at each."""
    inputs, cache, tokens, gaps = torch.tensor([prompt]), transformers.DynamicCache(), [], []
    with torch.no_grad():
        for _ in range(NEW_TOKENS):
            result = model(inputs, past_key_values=cache, use_cache=True)
            best = torch.topk(result.logits[0, -1], 2)
            tokens.append(int(best.indices[0]))
            gaps.append(float(best.values[0] - best.values[1]))
            inputs = best.indices[:1].view(1, 1)
    return tokens, gaps


def ask(port, prompt):
    """The texts of the greedy tokens."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("POST", "/v1/completions", json.dumps(
        {"prompt": prompt, "max_tokens": NEW_TOKENS, "temperature": 0, "logprobs": 0}))
    reply = json.loads(connection.getresponse().read())
    connection.close()
    return reply["choices"][0]["logprobs"]["tokens"]


def compare(options, flags, prompts, expected, texts_of):
    with tempfile.TemporaryDirectory() as folder:
        plan = pathlib.Path(folder) / "s.plan"
        subprocess.run([options.build_dir / "bin/bowline-compile", options.model, "--mode", "serve", "--max-context", "256",
                        "--max-batch", "1", *flags, "-o", plan], check=True)
        with subprocess.Popen([options.build_dir / "bin/bowline-serve", plan, "--weights", options.model, "--port", "0"],
                              stderr=subprocess.PIPE, text=True) as server:
            try:
                port = int(re.search(r":(\d+)$", server.stderr.readline())[1])
                same = 0
                for prompt, (tokens, gaps) in zip(prompts, expected):
                    got = ask(port, prompt)
                    # An end token has no text, and ends the answer.
                    wanted = texts_of(tokens)[:len(got)]
                    first = next((i for i, (a, b) in enumerate(zip(got, wanted)) if a != b), None)
                    same += first is None
                    if first is not None:
                        print(f"  token {first} of prompt {prompt[:6]}... is {got[first]!r}, not {wanted[first]!r}: the two "
                              f"best logits differ by {gaps[first]:.2g}")
            finally:
                server.send_signal(signal.SIGTERM)
    print(f"{' '.join(flags)}: {same} of {len(prompts)} prompts have the same tokens", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--build-dir", type=pathlib.Path, default=ROOT / "build/release")
    options = parser.parse_args()
    options.model = options.model.resolve()
    place = {"pretrained_model_name_or_path": options.model.parent, "gguf_file": options.model.name}
    tokenizer = transformers.AutoTokenizer.from_pretrained(**place)
    model = transformers.AutoModelForCausalLM.from_pretrained(**place, dtype=torch.float32).eval()
    prompts = [tokenizer.encode(form.format(subject)) for form in FORMS for subject in SUBJECTS]
    expected = [expect(model, prompt) for prompt in prompts]

    def texts_of(tokens):
        return [tokenizer.decode([token]) for token in tokens]

    for weights in ("f32", "as-stored"):
        compare(options, ["--weights-dtype", weights], prompts, expected, texts_of)


if __name__ == "__main__":
    main()
