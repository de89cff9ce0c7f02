#!/usr/bin/env python3
"""Greedy tokens of served models are those that test/oracle/make_greedy.py recorded from f64, in whatever steps they are
computed: alone and side by side, with prompts whole and in parts, with shared beginnings, with too few blocks."""

import array
import concurrent.futures
import http.client
import json
import re
import unittest

import served_model
import stories260k
import tools

NEW_TOKENS = 32


def recorded(name):
    with open(tools.ORACLE / f"{name}-greedy.jsonl", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def logit_bound(layers, inner, width, size):
    """Bound of the rounding error in the difference of two logits, which sum products of magnitude `size` at most.

    A product's terms are off by 2^-15 of themselves where tiles of bf16 multiply, and its f32 sum by (inner + width) * 2^-24 at
    most. Two products in each of the layers, and the last one, change what the logits read by as much of itself."""
    return 2 * (2 * layers + 1) * (2**-15 + (inner + width) * 2**-24) * size


class GreedyTest(tools.ToolTest):
    def compile(self, model, *flags, context=80):
        plan = self.folder / "s.plan"
        tools.succeed("bowline-compile", model, "--mode", "serve", "--max-context", context, "--block-tokens", 4,
                      *(["--weights-dtype", "f32"] if "--weights-dtype" not in flags else []), *tools.ONE_THREAD, *flags, "-o",
                      plan)
        return plan

    def expect(self, line, got, bound, way):
        """The recorded tokens, or up to the first one that rounding may have chosen."""
        for i, (want, token) in enumerate(zip(line["tokens"], got, strict=True)):
            if want != token:
                self.assertLess(line["gaps"][i], bound(line["sums"][i]),
                                f"{way}: token {i} behind {line['prompt']} is {token}, not {want}")
                return

    def bound_of(self, config):
        return lambda size: logit_bound(config["num_hidden_layers"], config["intermediate_size"], config["hidden_size"], size)


class GreedyRunning(GreedyTest):
    def test_a_model_of_the_repository(self):
        model = tools.MODELS / "llama-tiny"
        config = json.loads((model / "config.json").read_text())
        for way, flags in (("whole prompts", ["--buckets", "1,32"]), ("parts of prompts", ["--buckets", "1,3"])):
            plan = self.compile(model, *flags, context=64)
            for line in recorded("llama-tiny"):
                ids = tools.succeed("bowline-run", plan, "--weights", model, "--quiet", "--temperature", 0, "--max-new-tokens",
                                    NEW_TOKENS, "--prompt-tokens", ",".join(map(str, line["prompt"])), "--print", "tokens")
                self.expect(line, [int(token) for token in ids.decode().split(",")], self.bound_of(config), way)


@unittest.skipUnless(stories260k.is_there(), stories260k.MISSING)
class GreedyServing(GreedyTest):
    def setUp(self):
        super().setUp()
        self.model = self.folder / "stories.gguf"
        stories260k.write(self.model)
        self.config, _ = stories260k.read_model()
        # Pieces such as <0x0A> are bytes; the recorded ones are of ASCII.
        self.pieces = [re.sub(r"^<0x(..)>$", lambda byte: chr(int(byte[1], 16)), text)
                       for text, _ in stories260k.read_tokens(self.config["vocab_size"])]
        self.lines = recorded("stories260K")

    def serve(self, *flags):
        """The port of a server."""
        return served_model.start(self, self.compile(self.model, *flags), "--weights", self.model)[1]

    def ask(self, port, line):
        """The texts of the tokens that a server gives for a prompt of ids."""
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=tools.TIMEOUT_SECONDS)
        connection.request("POST", "/v1/completions", json.dumps(
            {"prompt": line["prompt"], "max_tokens": NEW_TOKENS, "temperature": 0, "logprobs": 0}))
        reply = connection.getresponse()
        text = reply.read().decode()
        connection.close()
        self.assertEqual(reply.status, 200, text)
        return json.loads(text)["choices"][0]["logprobs"]["tokens"]

    def count(self, port, name):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=tools.TIMEOUT_SECONDS)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        return float(re.search(rf"^bowline_{name}(?:{{.*}})? (\S+)$", text, re.MULTILINE)[1])

    def expect_all(self, port, way, at_once):
        """Asks for all prompts, so many at once."""
        with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
            answers = list(pool.map(lambda line: self.ask(port, line), self.lines))
        bound = self.bound_of(self.config)
        for line, got in zip(self.lines, answers, strict=True):
            texts = {**line, "tokens": [self.pieces[token] for token in line["tokens"]]}
            self.expect(texts, got, bound, way)

    def test_alone_and_again(self):
        port = self.serve("--max-batch", 1, "--buckets", "1,16,64", "--kv-blocks", 2000)
        self.expect_all(port, "one at a time", 1)
        hits = self.count(port, "prefix_cache_hits_total")
        # Each prompt has whole blocks that are kept since it was asked before.
        for _ in range(2):
            self.expect_all(port, "of a prompt that was asked before", 1)
        again = self.count(port, "prefix_cache_hits_total")
        self.assertGreaterEqual(again - hits, 2 * sum((len(line["prompt"]) - 1) // 4 * 4 for line in self.lines))

    def test_side_by_side(self):
        port = self.serve("--max-batch", 8, "--buckets", "1,2,4,8,16,32,64")
        self.expect_all(port, "8 at once", 8)
        self.assertEqual(self.count(port, "num_preemptions_total"), 0)

    def test_prompts_in_parts(self):
        for buckets in ("1,3", "5"):
            port = self.serve("--max-batch", 3, "--buckets", buckets)
            for at_once in (1, 3):
                self.expect_all(port, f"{at_once} at once in steps of {buckets} tokens", at_once)

    def test_tokens_of_a_text_for_training(self):
        text, data = self.folder / "text", self.folder / "text.bin"
        said = "".join(self.pieces[token] for token in self.lines[0]["prompt"][1:]).replace("\u2581", " ").lstrip()
        text.write_text(said)
        tools.succeed("bowline-data", "tokenize", text, "--tokenizer", self.model, "-o", data)
        tokens = list(array.array("H", data.read_bytes()[1024:]))
        port = self.serve("--max-batch", 1, "--buckets", "1,16", "--kv-blocks", 64)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=tools.TIMEOUT_SECONDS)
        connection.request("POST", "/tokenize", json.dumps({"prompt": said, "add_special_tokens": False}))
        self.assertEqual(tokens, json.loads(connection.getresponse().read())["tokens"])
        connection.close()

    def test_requests_that_give_their_blocks_back(self):
        # One request of 80 tokens fits, and eight of them do not.
        port = self.serve("--max-batch", 8, "--buckets", "1,8,32", "--kv-blocks", 24)
        self.expect_all(port, "with too few blocks", 8)
        self.assertGreater(self.count(port, "num_preemptions_total"), 10)


if __name__ == "__main__":
    tools.main()
