#!/usr/bin/env python3
"""bowline-serve, asked by the Python package `openai` as its users ask: what comes back, as one text and as a stream, which
errors are raised, that requests are sent again when the queue was full, and that a client that gives up frees its blocks.

Needs the package; `make check-serve` installs it."""

import http.client
import json
import math
import pathlib
import re
import tempfile
import threading
import time

import served_model
import tools
from openai import (APITimeoutError, AuthenticationError, BadRequestError, NotFoundError, OpenAI, RateLimitError)

CONTEXT, BATCH = 512, 2
NAME = "knot"
GREEDY = {"model": NAME, "temperature": 0}
CHAT = {**GREEDY, "messages": [{"role": "user", "content": "Name a knot."}]}


class ServeOpenai(tools.ToolTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        model = tempfile.TemporaryDirectory(prefix="bowline-test-")
        cls.addClassCleanup(model.cleanup)
        cls.weights = served_model.write_random_model(pathlib.Path(model.name))
        cls.plan = pathlib.Path(model.name) / "s.plan"
        tools.succeed("bowline-compile", cls.weights, "--mode", "serve", "--max-context", CONTEXT, "--max-batch", BATCH,
                      "--buckets", "1,8,64", *tools.ONE_THREAD, "-o", cls.plan)

    def setUp(self):
        super().setUp()
        (self.folder / "keys").write_text("secret\n")
        _, self.port = served_model.start(self, self.plan, "--weights", self.weights, "--served-model-name", NAME,
                                          "--max-queue", 1, "--api-key-file", self.folder / "keys")
        self.client = self.open_client()

    def open_client(self, key="secret", retries=0, timeout=tools.TIMEOUT_SECONDS):
        client = OpenAI(base_url=f"http://127.0.0.1:{self.port}/v1", api_key=key, max_retries=retries, timeout=timeout)
        self.addCleanup(client.close)
        return client

    def metric(self, name):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=tools.TIMEOUT_SECONDS)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        # Each metric names the model too.
        text = re.sub(r'model_name="[^"]*",?', "", text).replace(",}", "}").replace("{}", "")
        return float(re.search(rf"^bowline_{re.escape(name)} (\S+)$", text, re.MULTILINE)[1])

    def until(self, condition):
        limit = time.monotonic() + tools.TIMEOUT_SECONDS
        while not condition():
            self.assertLess(time.monotonic(), limit)
            time.sleep(0.01)

    def until_idle(self):
        self.until(lambda: self.metric("num_requests_running") == self.metric("num_requests_waiting") == 0)
        self.assertEqual(self.metric("kv_cache_usage_perc"), 0)

    def occupy(self):
        """A request whose answer is long, and which nobody reads; closing the connection cancels it."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=tools.TIMEOUT_SECONDS)
        self.addCleanup(connection.close)
        connection.request("POST", "/v1/completions", json.dumps({**GREEDY, "prompt": "a", "max_tokens": CONTEXT - 1}),
                           {"Authorization": "Bearer secret"})
        return connection

    def test_models(self):
        models = list(self.client.models.list())
        self.assertEqual([(model.id, model.object, model.owned_by) for model in models], [(NAME, "model", "bowline")])
        self.assertEqual(self.client.models.retrieve(NAME), models[0])
        with self.assertRaises(NotFoundError) as raised:
            self.client.models.retrieve("no/such model")
        self.assertEqual((raised.exception.code, raised.exception.status_code), ("model_not_found", 404))

    def test_chats(self):
        whole = self.client.chat.completions.create(**CHAT, max_completion_tokens=12)
        self.assertEqual((whole.object, whole.model, len(whole.choices)), ("chat.completion", NAME, 1))
        choice = whole.choices[0]
        self.assertEqual((choice.index, choice.message.role, choice.finish_reason), (0, "assistant", "length"))
        self.assertEqual((whole.usage.completion_tokens, whole.usage.total_tokens), (12, whole.usage.prompt_tokens + 12))
        chunks = list(self.client.chat.completions.create(**CHAT, max_tokens=12, stream=True,
                                                          stream_options={"include_usage": True}))
        self.assertEqual(chunks[0].choices[0].delta.role, "assistant")
        self.assertEqual("".join(each.choices[0].delta.content or "" for each in chunks[:-1]), choice.message.content)
        self.assertEqual([each.choices[0].finish_reason for each in chunks[-3:-1]], [None, "length"])
        self.assertEqual((chunks[-1].choices, chunks[-1].usage), ([], whole.usage))
        self.assertEqual({(each.id, each.object) for each in chunks}, {(chunks[0].id, "chat.completion.chunk")})
        # Without the option there is no usage.
        chunks = list(self.client.chat.completions.create(**CHAT, max_tokens=2, stream=True))
        self.assertTrue(all(each.usage is None and each.choices for each in chunks))

    def test_logarithms_of_probabilities(self):
        asked = {**CHAT, "max_tokens": 4, "logprobs": True, "top_logprobs": 5}
        whole = self.client.chat.completions.create(**asked).choices[0]
        content = whole.logprobs.content
        self.assertEqual(bytes(sum((token.bytes for token in content), [])).decode(errors="replace"), whole.message.content)
        for token in content:
            likely = [each.logprob for each in token.top_logprobs]
            self.assertEqual((len(likely), likely[0]), (5, token.logprob))
            self.assertEqual(likely, sorted(likely, reverse=True))
            self.assertLess(sum(map(math.exp, likely)), 1 + 1e-5)
        streamed = []
        for chunk in self.client.chat.completions.create(**asked, stream=True):
            if chunk.choices[0].logprobs:
                streamed += chunk.choices[0].logprobs.content
        self.assertEqual([token.bytes for token in streamed], [token.bytes for token in content])
        completion = self.client.completions.create(**GREEDY, prompt="The rope", max_tokens=4, logprobs=3).choices[0]
        self.assertEqual([len(each) for each in (completion.logprobs.tokens, completion.logprobs.token_logprobs,
                                                 completion.logprobs.text_offset)], [4, 4, 4])
        # Tokens that are not whole letters may have one text.
        self.assertTrue(all(1 <= len(each) <= 4 for each in completion.logprobs.top_logprobs))

    def test_completions(self):
        asked = {**GREEDY, "prompt": "The rope", "max_tokens": 24}
        whole = self.client.completions.create(**asked)
        text = whole.choices[0].text
        self.assertEqual((whole.object, whole.choices[0].finish_reason), ("text_completion", "length"))
        self.assertEqual((whole.usage.prompt_tokens, whole.usage.completion_tokens), (len("The rope"), 24))
        chunks = list(self.client.completions.create(**asked, stream=True, stream_options={"include_usage": True}))
        self.assertEqual("".join(each.choices[0].text for each in chunks[:-1]), text)
        self.assertEqual((chunks[-1].choices, chunks[-1].usage), ([], whole.usage))
        # An array of ids is a prompt too.
        ids = self.client.completions.create(**{**asked, "prompt": list(b"The rope")})
        self.assertEqual(ids.choices[0].text, text)
        # A stop text ends an answer in front of it.
        stop = text[9:11]
        stopped = self.client.completions.create(**asked, stop=[stop, "\0never"]).choices[0]
        self.assertEqual((stopped.text, stopped.finish_reason), (text[:text.index(stop)], "stop"))
        pieces = [each.choices[0] for each in self.client.completions.create(**asked, stop=stop, stream=True)]
        self.assertEqual(("".join(piece.text for piece in pieces), pieces[-1].finish_reason), (stopped.text, "stop"))

    def test_several_answers(self):
        asked = {"model": NAME, "prompt": "The rope", "max_tokens": 8, "seed": 3, "n": 3}
        choices = self.client.completions.create(**asked).choices
        self.assertEqual([choice.index for choice in choices], [0, 1, 2])
        self.assertEqual(len({choice.text for choice in choices}), 3)
        texts = [""] * 3
        for chunk in self.client.completions.create(**asked, stream=True):
            for choice in chunk.choices:
                texts[choice.index] += choice.text
        self.assertEqual(texts, [choice.text for choice in choices])

    def test_errors(self):
        wrong = self.open_client(key="wrong")
        with self.assertRaises(AuthenticationError) as raised:
            wrong.chat.completions.create(**CHAT)
        self.assertEqual((raised.exception.code, raised.exception.status_code), ("invalid_api_key", 401))
        self.assertRaises(AuthenticationError, wrong.models.list)
        with self.assertRaises(NotFoundError) as raised:
            self.client.completions.create(model="rope", prompt="a")
        self.assertEqual((raised.exception.code, raised.exception.param), ("model_not_found", "model"))
        for call, param in ((lambda: self.client.completions.create(**GREEDY, prompt="a" * CONTEXT), "prompt"),
                            (lambda: self.client.chat.completions.create(**CHAT, max_tokens=CONTEXT), "messages")):
            with self.assertRaises(BadRequestError) as raised:
                call()
            self.assertEqual((raised.exception.code, raised.exception.param), ("context_length_exceeded", param))
        for more, code in (({"temperature": 3}, "invalid_value"), ({"n": 0}, "invalid_value"),
                           ({"max_tokens": "x"}, "invalid_type"), ({"extra_body": {"knots": 3}}, "unknown_parameter"),
                           ({"messages": []}, "invalid_value")):
            with self.assertRaises(BadRequestError, msg=more) as raised:
                self.client.chat.completions.create(**{**CHAT, **more})
            self.assertEqual((raised.exception.code, raised.exception.type), (code, "invalid_request_error"), more)

    def test_a_full_queue_is_asked_again(self):
        held = [self.occupy() for _ in range(BATCH)]
        self.until(lambda: self.metric("num_requests_running") == BATCH)
        held.append(self.occupy())
        self.until(lambda: self.metric("num_requests_waiting") == 1)
        with self.assertRaises(RateLimitError) as raised:
            self.client.chat.completions.create(**CHAT, max_tokens=1)
        self.assertEqual((raised.exception.code, raised.exception.response.headers["Retry-After"]),
                         ("rate_limit_exceeded", "1"))
        # The package waits as long as Retry-After says; meanwhile those before leave.
        found = []
        patient = self.open_client(retries=5)
        seen = []
        patient._client.event_hooks["response"].append(  # pylint: disable=protected-access
            lambda response: seen.append(response.status_code))
        asks = threading.Thread(target=lambda: found.append(patient.chat.completions.create(**CHAT, max_tokens=1)))
        asks.start()
        self.until(lambda: seen)
        for connection in held:
            connection.close()
        asks.join(tools.TIMEOUT_SECONDS)
        self.assertEqual(found[0].choices[0].finish_reason, "length")
        self.assertEqual((seen[0], seen[-1]), (429, 200))
        self.until_idle()

    def test_a_client_that_gives_up_frees_its_blocks(self):
        ended = self.metric('request_success_total{finished_reason="abort"}')
        hasty = self.open_client(timeout=0.05)
        with self.assertRaises(APITimeoutError):
            hasty.completions.create(**GREEDY, prompt="a", max_tokens=CONTEXT - 1)
        # A stream of which one token is read.
        stream = self.client.completions.create(**GREEDY, prompt="a", max_tokens=CONTEXT - 1, stream=True)
        self.assertIsNone(next(iter(stream)).choices[0].finish_reason)
        self.assertGreater(self.metric("kv_cache_usage_perc"), 0)
        stream.close()
        self.until_idle()
        self.assertEqual(self.metric('request_success_total{finished_reason="abort"}') - ended, 2)
        self.assertEqual(self.metric('request_success_total{finished_reason="error"}'), 0)


if __name__ == "__main__":
    tools.main()
