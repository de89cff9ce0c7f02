#!/usr/bin/env python3
"""bowline-serve from end to end: a model with a tokenizer and a chat template behind HTTP, whose answers are those of
bowline-run; keys, signals, wrong calls."""

import http.client
import json
import math
import re
import shutil
import signal
import socket
import subprocess
import unittest

import served_model
import tools

CONTEXT = 29


class Serve(tools.ToolTest):
    def setUp(self):
        super().setUp()
        self.weights = served_model.write_model(self.folder)
        self.plan = self.folder / "g.plan"
        self.steps = self.folder / "s.plan"
        tools.succeed("bowline-compile", tools.MODELS / "llama-tiny", "--mode", "generate", "--seq", CONTEXT,
                      *tools.ONE_THREAD, "-o", self.plan)

    def serve(self, *flags, plan=None):
        """A server that is ready, and its port."""
        return served_model.start(self, plan or self.plan, "--weights", self.weights, *flags)

    def ask(self, port, path, body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=tools.TIMEOUT_SECONDS)
        connection.request("GET" if body is None else "POST", path, None if body is None else json.dumps(body), headers)
        reply = connection.getresponse()
        text = reply.read().decode()
        connection.close()
        return reply.status, text

    def serve_steps(self, *flags):
        tools.succeed("bowline-compile", tools.MODELS / "llama-tiny", "--mode", "serve", "--max-context", CONTEXT,
                      "--max-batch", 2, "--buckets", 1, 8, *tools.ONE_THREAD, "-o", self.steps)
        return self.serve(*flags, plan=self.steps)

    def refuse(self, code, says, *arguments):
        done = tools.start("bowline-serve", *arguments)
        self.assertEqual(done.returncode, code, done.stderr.decode())
        self.assertIn(says, done.stderr.decode())

    def run_greedily(self, prompt, count):
        ids = ",".join(str(byte) for byte in prompt.encode())
        out = tools.succeed("bowline-run", self.plan, "--weights", self.weights, "--prompt-tokens", ids,
                            "--max-new-tokens", count, "--temperature", 0, "--quiet")
        made = [int(token) for token in out.decode().strip().split(",")]
        if 256 in made:
            made = made[:made.index(256)]
        return bytes(made).decode(errors="replace")

    def test_answers_are_those_of_bowline_run(self):
        server, port = self.serve()
        expected = self.run_greedily("In the", 8)
        status, text = self.ask(port, "/v1/completions", {"prompt": "In the", "max_tokens": 8, "temperature": 0})
        self.assertEqual(status, 200, text)
        self.assertEqual(json.loads(text)["choices"][0]["text"], expected)
        status, text = self.ask(port, "/v1/completions", {"prompt": "In the", "max_tokens": 8, "temperature": 0,
                                                          "stream": True})
        events = [line[6:] for line in text.splitlines() if line.startswith("data: ")]
        self.assertEqual(events[-1], "[DONE]")
        self.assertEqual("".join(json.loads(event)["choices"][0]["text"] for event in events[:-1]), expected)
        # The template adds text around a message.
        status, text = self.ask(port, "/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}],
                                                               "max_tokens": 3, "temperature": 0})
        self.assertEqual(status, 200, text)
        self.assertEqual(json.loads(text)["choices"][0]["message"]["content"],
                         self.run_greedily("[user] a\n[assistant] ", 3))
        self.assertEqual(json.loads(text)["usage"]["prompt_tokens"], len("[user] a\n[assistant] "))
        # The same seed draws the same tokens.
        body = {"prompt": "In", "max_tokens": 20, "seed": 7}
        first, second = (self.ask(port, "/v1/completions", body)[1] for _ in range(2))
        self.assertEqual(json.loads(first)["choices"], json.loads(second)["choices"])
        status, text = self.ask(port, "/v1/completions", {"prompt": "a" * CONTEXT})
        self.assertEqual((status, json.loads(text)["error"]["code"]), (400, "context_length_exceeded"))
        server.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(tools.TIMEOUT_SECONDS), 0)

    def test_several_answers_with_logarithms(self):
        _, port = self.serve_steps()
        body = {"prompt": "In the", "max_tokens": 5, "seed": 3, "n": 3, "logprobs": 2}
        choices = json.loads(self.ask(port, "/v1/completions", body)[1])["choices"]
        self.assertEqual([choice["index"] for choice in choices], [0, 1, 2])
        for i, choice in enumerate(choices):
            alone = json.loads(self.ask(port, "/v1/completions", {**body, "seed": 3 + i, "n": 1})[1])["choices"][0]
            self.assertEqual(alone["text"], choice["text"])
            for one, other in zip(alone["logprobs"]["token_logprobs"], choice["logprobs"]["token_logprobs"], strict=True):
                self.assertAlmostEqual(one, other, places=4)
        # The least value that JSON can say leaves one token.
        status, text = self.ask(port, "/v1/completions", {"prompt": "In the", "max_tokens": 2, "top_p": 5e-324})
        self.assertEqual(status, 200, text)
        greedy = {"messages": [{"role": "user", "content": "a"}], "max_tokens": 4, "temperature": 0, "logprobs": True,
                  "top_logprobs": 20}
        choice, = json.loads(self.ask(port, "/v1/chat/completions", greedy)[1])["choices"]
        content = choice["logprobs"]["content"]
        self.assertEqual(bytes(sum((token["bytes"] for token in content), [])).decode(errors="replace"),
                         choice["message"]["content"])
        for token in content:
            likely = [each["logprob"] for each in token["top_logprobs"]]
            self.assertEqual(len(likely), 20)
            self.assertEqual((likely, token["logprob"]), (sorted(likely, reverse=True), likely[0]))
            self.assertLess(sum(map(math.exp, likely)), 1 + 1e-5)
            self.assertGreater(sum(map(math.exp, likely)), 20 / 257)

    def test_the_models_defaults(self):
        (self.weights / "generation_config.json").write_text('{"do_sample": false, "max_new_tokens": 4}')
        _, port = self.serve_steps()
        asked, plain = (json.loads(self.ask(port, "/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}],
                                                                           **more})[1])
                        for more in ({"temperature": 0, "max_tokens": 4}, {}))
        self.assertEqual(asked["choices"], plain["choices"])
        self.assertEqual(asked["usage"]["completion_tokens"], 4)

    @unittest.skipUnless(shutil.which("promtool"), "needs promtool, of the package prometheus")
    def test_promtool_takes_the_metrics(self):
        _, port = self.serve_steps()
        self.assertEqual(self.ask(port, "/v1/completions", {"prompt": "In", "max_tokens": 2})[0], 200)
        text = self.ask(port, "/metrics")[1]
        self.assertIn("bowline_kv_cache_usage_perc", text)
        done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))

    def test_a_line_of_each_request_and_latencies(self):
        server, port = self.serve_steps("--log-json")
        body = {"prompt": "In the", "max_tokens": 5, "temperature": 0, "n": 2}
        self.assertEqual(self.ask(port, "/v1/completions", body)[0], 200)
        self.assertEqual(self.ask(port, "/v1/completions", {**body, "stream": True})[0], 200)
        self.assertEqual(self.ask(port, "/v1/completions", {"prompt": 3})[0], 400)
        metrics = self.ask(port, "/metrics")[1]
        records = [json.loads(server.stderr.readline()) for _ in range(4)]
        self.assertEqual([(r["method"], r["path"], r["status"], r["complete"]) for r in records],
                         [("POST", "/v1/completions", 200, True), ("POST", "/v1/completions", 200, True),
                          ("POST", "/v1/completions", 400, True), ("GET", "/metrics", 200, True)])
        tokens = 0
        for record in records[:2]:
            self.assertEqual(record["prompt_tokens"], len("In the"))
            self.assertEqual(len(record["finish_reasons"]), 2)
            self.assertLessEqual(0, record["first_token_ms"])
            self.assertLessEqual(record["first_token_ms"], record["duration_ms"])
            self.assertNotIn("In the", json.dumps(record))
            tokens += record["completion_tokens"]
        self.assertNotIn("prompt_tokens", records[2])
        counts = {name: int(value) for name, value in re.findall(r"^bowline_(\w+)_seconds_count\{.*\} (\d+)$", metrics, re.M)}
        # Of four answers, in two requests.
        per_token = counts.pop("request_time_per_output_token")
        self.assertLessEqual(per_token, 4)  # of answers of at least two tokens
        self.assertEqual(counts, {"time_to_first_token": 4, "inter_token_latency": tokens - 4, "e2e_request_latency": 2,
                                  "request_queue_time": 4, "request_prefill_time": 4, "request_decode_time": 4,
                                  "request_inference_time": 4})
        for name, count in counts.items():
            buckets = [int(n) for n in re.findall(rf'^bowline_{name}_seconds_bucket{{.*le="[^"]+"}} (\d+)$', metrics, re.M)]
            self.assertEqual((buckets, buckets[-1]), (sorted(buckets), count))

    def test_keys_and_names(self):
        (self.folder / "keys").write_text("first\n\nsecond\n")
        _, port = self.serve("--api-key-file", self.folder / "keys", "--served-model-name", "knot")
        self.assertEqual(self.ask(port, "/v1/models")[0], 401)
        status, text = self.ask(port, "/v1/models", Authorization="Bearer second")
        self.assertEqual((status, json.loads(text)["data"][0]["id"]), (200, "knot"))
        self.assertEqual(self.ask(port, "/health")[0], 200)
        status, page = self.ask(port, "/")
        self.assertEqual((status, page[:15]), (200, "<!doctype html>"))

    def test_a_signal_that_says_nothing_leaves_the_others(self):
        server, port = self.serve()
        server.send_signal(signal.SIGUSR1)
        self.assertEqual(self.ask(port, "/health")[0], 200)
        server.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(tools.TIMEOUT_SECONDS), 0)

    def test_a_client_that_does_not_read_holds_up_no_end(self):
        server, port = self.serve("--drain-timeout", 0)
        # Replies of 50 MB, of which sockets keep a part.
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 2000)
            # Meanwhile the server comes to a piece that no socket has room for.
            for _ in range(100):
                self.assertEqual(self.ask(port, "/health")[0], 200)
            server.send_signal(signal.SIGTERM)
            # A client has 30 seconds for each piece of a reply.
            self.assertEqual(server.wait(20), 0)

    def test_a_log_that_nobody_reads_holds_up_nobody(self):
        server, port = self.serve("--log-json")
        for _ in range(600):
            self.assertEqual(self.ask(port, "/" + 200 * "x")[0], 404)
        server.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(tools.TIMEOUT_SECONDS), 0)

    def test_wrong_calls(self):
        _, port = self.serve()
        self.refuse(3, f"cannot listen on 127.0.0.1:{port}", self.plan, "--weights", self.weights, "--port", port)
        self.refuse(1, "cannot serve", self.folder / "train.plan", "--weights", self.weights)
        self.refuse(1, "tokenizer.json", self.plan, "--weights", tools.MODELS / "llama-tiny")
        (self.folder / "keys").write_text("\n")
        self.refuse(1, "has no key", self.plan, "--weights", self.weights, "--api-key-file", self.folder / "keys")
        self.refuse(1, "no.plan", self.folder / "no.plan", "--weights", self.weights)

    def test_a_template_that_is_not_understood_is_named(self):
        (self.weights / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|end|>", "chat_template": "{% x %}"}))
        server = subprocess.Popen([tools.tool("bowline-serve"), self.plan, "--weights", self.weights, "--port", "0"],
                                  stderr=subprocess.PIPE, text=True)
        self.addCleanup(server.stderr.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        self.assertIn("note: /v1/chat/completions is refused: template 'chat_template' of '", server.stderr.readline())


if __name__ == "__main__":
    tools.main()
