#!/usr/bin/env python3
"""Generates with llama.cpp or ik_llama.cpp, through the functions of their libraries that the Python packages bind.

For every line of the input, {"prompts": [text, ...], "tokens": N}, all prompts are computed side by side, as sequences of
one batch, and a line comes back: seconds from the request to the first and the last token, and how
many tokens and which text came. Greedy, and no token ends a text.

  run_llama.py --package llama_cpp|ik_llama_cpp --model FILE.gguf --threads N --context N --streams N"""

import argparse
import ctypes
import importlib
import json
import sys
import time

import numpy

# The packages bind nearly the same functions; ik_llama.cpp has those of before vocabularies and memories were objects.
BINDINGS = {"llama_cpp": "llama_cpp.llama_cpp", "ik_llama_cpp": "ik_llama_cpp._ctypes_api"}


class Generator:
    def __init__(self, arguments):
        self.api = importlib.import_module(BINDINGS[arguments.package])
        self.api.llama_backend_init()
        self.model = self.api.llama_model_load_from_file(str(arguments.model).encode(), self.api.llama_model_default_params())
        if not self.model:
            sys.exit(f"run_llama: error: {arguments.package} does not load {arguments.model}")
        parameters = self.api.llama_context_default_params()
        parameters.n_ctx, parameters.n_batch, parameters.n_seq_max = arguments.context, 2048, arguments.streams
        parameters.n_threads = parameters.n_threads_batch = arguments.threads
        if hasattr(parameters, "kv_unified"):  # one sequence may use what others leave
            parameters.kv_unified = True
        if arguments.package == "ik_llama_cpp":  # fails GGML_ASSERT(S > 0) with sequences side by side, in 0.1.5
            parameters.flash_attn = False
        self.context = self.api.llama_init_from_model(self.model, parameters)
        if not self.context:
            sys.exit(f"run_llama: error: {arguments.package} makes no context of {arguments.context} tokens")
        vocabulary = self.api.llama_model_get_vocab(self.model)
        self.words = self.api.llama_vocab_n_tokens(vocabulary)
        self.tokenizer = vocabulary if arguments.package == "llama_cpp" else self.model
        self.batch = self.api.llama_batch_init(2048, 0, 1)

    def tokens(self, text):
        data = text.encode()
        ids = (self.api.llama_token * (len(data) + 8))()
        return list(ids[:self.api.llama_tokenize(self.tokenizer, data, len(data), ids, len(ids), True, False)])

    def text(self, ids):
        piece, data = ctypes.create_string_buffer(256), b""
        for token in ids:
            length = self.api.llama_token_to_piece(self.tokenizer, token, piece, 256, 0, False)
            data += piece.raw[:max(0, length)]
        return data.decode(errors="replace")

    def clear(self):
        if hasattr(self.api, "llama_memory_clear"):
            self.api.llama_memory_clear(self.api.llama_get_memory(self.context), True)
        else:
            self.api.llama_kv_cache_clear(self.context)

    def step(self, entries):
        """The most likely token after each entry, (sequence, first position, tokens)."""
        rows, ends = 0, []
        for sequence, position, tokens in entries:
            for i, token in enumerate(tokens):
                self.batch.token[rows], self.batch.pos[rows] = token, position + i
                self.batch.n_seq_id[rows], self.batch.seq_id[rows][0] = 1, sequence
                self.batch.logits[rows] = i == len(tokens) - 1
                rows += 1
            ends.append(rows - 1)
        self.batch.n_tokens = rows
        if code := self.api.llama_decode(self.context, self.batch):
            sys.exit(f"run_llama: error: llama_decode returned {code}")
        logits = (self.api.llama_get_logits_ith(self.context, end) for end in ends)
        return [int(numpy.ctypeslib.as_array(row, (self.words,)).argmax()) for row in logits]

    def generate(self, prompts, count):
        self.clear()
        start = time.perf_counter()
        entries = [(i, 0, self.tokens(prompt)) for i, prompt in enumerate(prompts)]
        prompt_tokens = [len(tokens) for _, _, tokens in entries]
        following = self.step(entries)
        first, written = time.perf_counter() - start, [[token] for token in following]
        for i in range(count - 1):
            following = self.step([(sequence, prompt_tokens[sequence] + i, [token])
                                   for sequence, token in enumerate(following)])
            for tokens, token in zip(written, following):
                tokens.append(token)
        last = time.perf_counter() - start
        return {"first_s": [first] * len(prompts), "last_s": [last] * len(prompts), "tokens": [count] * len(prompts),
                "prompt_tokens": prompt_tokens, "texts": [self.text(tokens) for tokens in written]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", choices=BINDINGS, required=True)
    parser.add_argument("--model", required=True)
    for name in ("--threads", "--context", "--streams"):
        parser.add_argument(name, type=int, required=True)
    generator = Generator(parser.parse_args())
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(generator.generate(request["prompts"], request["tokens"])), flush=True)


if __name__ == "__main__":
    main()
