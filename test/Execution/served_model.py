"""A model that can be served: weights of a few steps of training, a tokenizer and a chat template."""

import json
import re
import subprocess

import gguf_models
import tools

TEMPLATE = ("{% for message in messages %}[{{ message['role'] }}] {{ message['content'] }}\n{% endfor %}"
            "{% if add_generation_prompt %}[assistant] {% endif %}")


def byte_alphabet():
    """The letter that stands for each byte in vocabularies of byte-level encodings (GPT-2's)."""
    shown = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    letters, more = {}, 256
    for byte in range(256):
        letters[byte] = chr(byte) if byte in shown else chr(more)
        more += byte not in shown
    return letters


def write_model(folder):
    """The directory of a model whose tokens are bytes, and one more for the end."""
    tools.compile_train("llama-tiny", folder / "train.plan")
    tools.succeed("bowline-run", folder / "train.plan", "--data", tools.TOKENS, "--steps", 5, "--save", folder / "saved",
                  "--quiet")
    weights = folder / "saved" / "step-00000005"
    write_tokenizer(weights, end="<|end|>")
    return weights


def write_random_model(folder):
    """The directory of a model that is worth computing: 3 million random parameters, a context of 512 tokens, and no token at
    which texts end."""
    config = json.loads((tools.MODELS / "llama-tiny" / "config.json").read_text())
    config |= {"hidden_size": 256, "head_dim": 32, "intermediate_size": 688, "num_hidden_layers": 4, "num_attention_heads": 8,
               "num_key_value_heads": 4, "max_position_embeddings": 512}
    del config["eos_token_id"]
    weights = folder / "random"
    gguf_models.write_directory(weights, config, gguf_models.random_tensors(config, seed=1))
    write_tokenizer(weights)
    return weights


def write_tokenizer(weights, end=None):
    """A tokenizer whose tokens are bytes and one more, at which texts end if `end` names it, and a chat template."""
    letters = byte_alphabet()
    vocabulary = {letters[byte]: byte for byte in range(256)}
    last = {"id": 256, "content": end or "<|nothing|>", "special": True, "single_word": False, "lstrip": False, "rstrip": False,
           "normalized": False}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    (weights / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [last], "normalizer": None,
        "pre_tokenizer": level, "post_processor": level, "decoder": level,
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "vocab": vocabulary,
                  "merges": []}}))
    (weights / "tokenizer_config.json").write_text(json.dumps({**({"eos_token": end} if end else {}),
                                                               "chat_template": TEMPLATE}))


def start(test, *arguments):
    """A server that is ready, which ends with the test, and its port."""
    server = subprocess.Popen([tools.tool("bowline-serve"), *map(str, arguments), "--port", "0"], stderr=subprocess.PIPE,
                              text=True)
    test.addCleanup(server.stderr.close)
    test.addCleanup(server.wait)
    test.addCleanup(server.kill)
    line = server.stderr.readline()
    found = re.fullmatch(r"listening on http://127\.0\.0\.1:(\d+)\n", line)
    test.assertIsNotNone(found, line)
    return server, int(found[1])
