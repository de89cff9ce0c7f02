#!/usr/bin/env python3
"""bowline-serve of a model instead of a plan: it compiles the model once and keeps the plan, whatever happens to the
compiler, the plan or the server meanwhile. bowline-run writes the same text with the same plan."""

import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import served_model
import tools

CONTEXT = 40
FLAGS = ["--max-context", str(CONTEXT), "--max-batch", "2", *tools.ONE_THREAD]


class ServeModel(tools.ToolTest):
    def setUp(self):
        super().setUp()
        self.weights = served_model.write_model(self.folder)
        self.cache = self.folder / "cache"
        # A server whose compiler is a script that writes down each of its starts.
        self.bin = self.folder / "bin"
        self.bin.mkdir()
        shutil.copy(tools.tool("bowline-serve"), self.bin)
        self.starts = self.folder / "starts"
        self.write_compiler(f'echo x >> "{self.starts}"\nexec "{tools.tool("bowline-compile")}" "$@"')

    def write_compiler(self, script):
        path = self.bin / "bowline-compile"
        path.write_text("#!/bin/bash\n" + script + "\n")
        path.chmod(0o755)

    def test_mistakes_on_the_command_line(self):
        gone, plan = self.folder / "gone", self.folder / "x.plan"
        plan.write_bytes(b"no plan at all")
        for arguments, says in (([gone], f"cannot open '{gone}': no such file or directory"),
                                ([plan, "--weights", gone], f"cannot open '{gone}': no such file or directory"),
                                ([plan], f"'{plan}'"), ([plan, "--drain-timeout", "nan"], "--drain-timeout: 'nan' is no number"),
                                ([plan, "--cors-origin", "localhost"], "'localhost' is no origin; give it as https://HOST"),
                                ([plan, "--cors-origin", "https://host/"], "'https://host/' is no origin")):
            with self.subTest(arguments=arguments):
                done = tools.start("bowline-serve", *arguments)
                self.assertEqual(done.returncode, 1)
                self.assertIn(says, done.stderr.decode())
                self.assertNotIn("has no weights", done.stderr.decode())

    def environment(self, **more):
        return {**os.environ, "BOWLINE_CACHE_DIR": str(self.cache), **more}

    def launch(self, *flags, model=None, **more):
        server = subprocess.Popen([self.bin / "bowline-serve", model or self.weights, "--port", "0", *map(str, flags)],
                                  stderr=subprocess.PIPE, text=True, env=self.environment(**more))
        self.addCleanup(server.stderr.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        return server

    def until_ready(self, server):
        """The port, and the messages before the one that names it."""
        said = ""
        for line in server.stderr:
            if found := re.fullmatch(r"listening on http://127\.0\.0\.1:(\d+)\n", line):
                return int(found[1]), said
            said += line
        self.fail(f"the server ended with {server.wait(tools.TIMEOUT_SECONDS)}: {said}")

    def serve(self, *flags, **more):
        """The server's messages until it was ready, and its answer to a prompt."""
        server = self.launch(*flags, **more)
        port, said = self.until_ready(server)
        answer = self.complete(port, "/v1/completions", prompt="In the", max_tokens=8)["text"]
        server.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(tools.TIMEOUT_SECONDS), 0)
        return said, answer

    def complete(self, port, path, **body):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=tools.TIMEOUT_SECONDS)
        connection.request("POST", path, json.dumps({"temperature": 0, **body}))
        reply = connection.getresponse()
        text = reply.read().decode()
        connection.close()
        self.assertEqual(reply.status, 200, text)
        return json.loads(text)["choices"][0]

    def end(self, *flags, **keywords):
        """The exit code of a server that does not start, and its messages."""
        server = self.launch(*flags, **keywords)
        _, said = server.communicate(timeout=tools.TIMEOUT_SECONDS)
        return server.returncode, said

    def count_starts(self):
        return len(self.starts.read_text().splitlines()) if self.starts.exists() else 0

    def plans(self):
        return sorted((self.cache / "plans").iterdir())

    def test_a_model_is_compiled_once(self):
        said, first = self.serve(*FLAGS)
        self.assertIn(f"note: compiling '{self.weights}'", said)
        self.assertIn("note: compiled in ", said)
        self.assertEqual(self.count_starts(), 1)
        said, second = self.serve(*FLAGS)
        self.assertNotIn("compil", said)
        self.assertEqual(self.count_starts(), 1)
        self.assertEqual(first, second)
        # Other flags make other plans, and those from before stay.
        self.serve(*FLAGS, "--kv-dtype", "bf16")
        self.assertEqual(self.count_starts(), 2)
        self.serve(*FLAGS)
        self.assertEqual(self.count_starts(), 2)
        self.assertEqual(len(self.plans()), 2)
        # So do another model at the same place, and another compiler.
        os.utime(self.weights / "model.safetensors", ns=(1, 1))
        self.serve(*FLAGS)
        self.assertEqual(self.count_starts(), 3)
        self.write_compiler((self.bin / "bowline-compile").read_text() + "# another one")
        self.serve(*FLAGS)
        self.assertEqual(self.count_starts(), 4)

    def test_a_plan_that_is_no_good_is_replaced(self):
        _, answer = self.serve(*FLAGS)
        plan, = self.plans()
        whole = plan.read_bytes()
        damaged = bytearray(whole)
        damaged[len(whole) // 2] ^= 1
        for content in (bytes(damaged), whole[:100], b"", (self.folder / "train.plan").read_bytes()):
            plan.write_bytes(content)
            said, again = self.serve(*FLAGS)
            self.assertIn("note: the plan that was kept is not usable and is compiled anew: ", said)
            self.assertEqual(again, answer)
            self.assertEqual(plan.read_bytes(), whole)

    def test_two_servers_that_start_at_once(self):
        servers = [self.launch(*FLAGS) for _ in range(2)]
        ports = [self.until_ready(server)[0] for server in servers]
        answers = [self.complete(port, "/v1/completions", prompt="In the", max_tokens=8) for port in ports]
        self.assertEqual(answers[0], answers[1])
        self.assertEqual(len(self.plans()), 1)

    def test_a_plan_that_cannot_be_kept(self):
        folder = self.folder / "temporary"
        folder.mkdir()
        for cache, why in (("off", "the cache is off"), (str(self.folder / "train.plan"), "cannot use ")):
            said, _ = self.serve(*FLAGS, BOWLINE_CACHE_DIR=cache, TMPDIR=str(folder))
            self.assertIn("note: the plan is not kept: " + why, said)
            self.assertEqual(list(folder.iterdir()), [])

    def test_without_a_compiler(self):
        (self.bin / "bowline-compile").unlink()
        code, said = self.end(*FLAGS, PATH="")
        self.assertEqual(code, 1, said)
        self.assertIn(f"'{self.weights}' is a model, and there is no bowline-compile beside this program or on PATH", said)
        self.assertIn(f"'bowline-serve s.plan --weights {self.weights}'", said)
        # One on PATH does.
        said, _ = self.serve(*FLAGS, PATH=str(pathlib.Path(tools.tool("bowline-compile")).parent))
        self.assertIn("note: compiled in ", said)

    def test_a_compiler_that_fails(self):
        code, said = self.end(*FLAGS, "--dtype", "f7")
        self.assertEqual(code, 1, said)
        self.assertIn("bowline-compile: error: --dtype", said)
        self.assertIn("bowline-serve: error: cannot compile", said)
        self.write_compiler("kill -9 $$")
        code, said = self.end(*FLAGS)
        self.assertEqual(code, 3, said)
        self.assertIn("bowline-compile was ended by signal 9 (Killed)", said)
        # The disk is full.
        self.write_compiler(f'ulimit -f 1; exec "{tools.tool("bowline-compile")}" "$@"')
        code, said = self.end(*FLAGS)
        self.assertEqual(code, 3, said)
        self.assertIn(f"into '{self.cache}/plans/", said)
        self.assertEqual(self.plans(), [])

    def test_a_signal_while_it_compiles_ends_both(self):
        pid = self.folder / "pid"
        # As shells start programs in the background, where SIGINT means nothing.
        self.write_compiler(f'trap "" INT; echo $$ > "{pid}.part"; mv "{pid}.part" "{pid}"; exec sleep 1000')
        for number in (signal.SIGINT, signal.SIGTERM):
            pid.unlink(missing_ok=True)
            server = self.launch(*FLAGS)
            while not pid.exists():
                self.assertIsNone(server.poll())
                time.sleep(0.01)
            server.send_signal(number)
            _, said = server.communicate(timeout=tools.TIMEOUT_SECONDS)
            self.assertEqual(server.returncode, 0, said)
            self.assertIn("bowline-compile was stopped", said)
            with self.assertRaises(ProcessLookupError):
                os.kill(int(pid.read_text()), 0)

    def test_the_cache_of_keys_and_values_has_the_size_that_was_asked_for(self):
        # Blocks of 16 tokens, three for a sequence of 40.
        for flags, tokens in ((["--kv-memory", "1B"], 48), (["--kv-memory", "1GiB"], 96), (["--kv-blocks", "5"], 80)):
            said, _ = self.serve(*FLAGS, *flags)
            self.assertIn(f" and has room for {tokens} tokens of all requests together", said)
        # A machine that runs this test has enough memory for a cache of 96 tokens.
        said, _ = self.serve(*FLAGS)
        self.assertIn(" and has room for 96 tokens", said)

    def test_a_cache_in_int8(self):
        config = json.loads((self.weights / "config.json").read_text())
        width = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
        rows = 2 * config["num_hidden_layers"] * config["num_key_value_heads"] * 16
        # Blocks of 16 tokens whose rows have a scale of 4 bytes: five of them, and a byte less than that.
        five = 5 * rows * (width + 4)
        for flags, tokens in ((["--kv-memory", f"{five}B"], 80), (["--kv-memory", f"{five - 1}B"], 64)):
            said, answer = self.serve(*FLAGS, "--kv-dtype", "int8", *flags)
            self.assertIn(f" and has room for {tokens} tokens of all requests together", said)
        # Logits differ from those of a cache in f32 by the rounding of keys and values.
        logprobs = []
        for kind in ("f32", "int8"):
            server = self.launch(*FLAGS, "--kv-dtype", kind)
            port, _ = self.until_ready(server)
            choice = self.complete(port, "/v1/completions", prompt="In the beginning", max_tokens=1, logprobs=1)
            logprobs.append(choice["logprobs"]["token_logprobs"][0])
        self.assertNotEqual(*logprobs)
        self.assertAlmostEqual(*logprobs, delta=0.05)
        for name in ("int4", "i8", "f64"):
            code, said = self.end(*FLAGS, "--kv-dtype", name)
            self.assertEqual((code, "--kv-dtype" in said, "f32,bf16,f16,int8" in said), (1, True, True), said)

    def test_wrong_calls(self):
        plan = self.folder / "train.plan"
        code, said = self.end(model=plan)
        self.assertEqual((code, "which has no weights; give --weights" in said), (1, True), said)
        code, said = self.end("--weights", self.weights, "--max-batch", 2, model=plan)
        self.assertEqual((code, "is a plan, which was compiled with its own --max-batch" in said), (1, True), said)
        code, said = self.end("--kv-memory", "1GiB", "--kv-blocks", 5)
        self.assertEqual((code, "--kv-blocks excludes --kv-memory" in said), (1, True), said)
        code, said = self.end(model=self.folder)
        self.assertEqual((code, "tokenizer.json" in said), (1, True), said)

    def run_plan(self, *flags, **keywords):
        plan, = self.plans()
        return tools.succeed("bowline-run", plan, "--weights", self.weights, "--temperature", 0, "--quiet", *flags,
                             **keywords).decode()

    def test_bowline_run_writes_the_same_text(self):
        server = self.launch(*FLAGS)
        port, _ = self.until_ready(server)
        for prompt in ("In the", "\u00e4\u20ac\U0001f600"):
            expected = self.complete(port, "/v1/completions", prompt=prompt, max_tokens=16)["text"]
            self.assertEqual(self.run_plan("--prompt", prompt, "--max-new-tokens", 16), expected)
            self.assertEqual(self.run_plan("--prompt", "-", "--max-new-tokens", 16, input=prompt.encode()), expected)
            self.assertEqual(self.run_plan("--prompt", prompt, "--max-new-tokens", 16, "--echo"), prompt + expected)
        expected = self.complete(port, "/v1/chat/completions", messages=[{"role": "user", "content": "a"}])["message"]
        self.assertEqual(self.run_plan("--prompt", "a", "--chat"), expected["content"])
        # Ids in and out, which nothing ends early.
        ids = self.run_plan("--prompt-tokens", "73,110", "--max-new-tokens", 5).strip().split(",")
        self.assertEqual(len(ids), 5)
        # One choice is the likeliest token, whatever the temperature.
        plan, = self.plans()
        sampled = [tools.succeed("bowline-run", plan, "--weights", self.weights, "--quiet", "--prompt-tokens", "73,110",
                                 "--max-new-tokens", 5, "--temperature", 5, "--seed", seed, *limit).decode().strip()
                   for limit, seed in ((["--top-k", 1], 1), (["--top-p", 1e-9], 1), ([], 1), ([], 1), ([], 2))]
        self.assertEqual(sampled[:2], [",".join(ids)] * 2)
        self.assertEqual(sampled[2], sampled[3])
        self.assertNotEqual(sampled[2], sampled[4])

    def refuse_run(self, says, *flags):
        plan, = self.plans()
        done = tools.start("bowline-run", plan, "--weights", self.weights, *flags)
        self.assertEqual(done.returncode, 1, done.stderr.decode())
        self.assertIn(says, done.stderr.decode())

    def test_wrong_calls_of_bowline_run(self):
        self.serve(*FLAGS)
        self.refuse_run(f"the prompt has {CONTEXT} tokens, and the plan's context has {CONTEXT}", "--prompt", "a" * CONTEXT)
        self.refuse_run("--max-new-tokens asks for 40", "--prompt", "ab", "--max-new-tokens", 40)
        self.refuse_run("--chat needs a text", "--prompt-tokens", 1, "--chat")
        self.refuse_run("the prompt has the token 300", "--prompt-tokens", 300)
        self.refuse_run("it has no use for --steps", "--prompt", "a", "--steps", 1)
        (self.weights / "tokenizer_config.json").unlink()
        self.refuse_run("has no chat template", "--prompt", "a", "--chat")
        (self.weights / "tokenizer.json").unlink()
        self.refuse_run("tokenizer.json", "--prompt", "a")


if __name__ == "__main__":
    tools.main()
