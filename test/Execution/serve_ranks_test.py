#!/usr/bin/env python3
"""Plans for serving with several ranks, as threads of one server and as processes: they answer as one rank does, wait as
long as nobody asks, and end together."""

import http.client
import json
import os
import re
import signal
import subprocess
import time

import served_model
import tools

SIZES = ["--mode", "serve", "--max-context", "40", "--max-batch", "2", "--buckets", "1,2,8", "--kv-blocks", "8",
         *tools.ONE_THREAD]
PROMPTS = ["In the", "a", "knots and ropes"]


class ServeRanks(tools.ToolTest):
    def setUp(self):
        super().setUp()
        self.weights = served_model.write_model(self.folder)
        self.plan = self.compile("tp.plan", "--mesh", "tp=2")

    def compile(self, name, *flags):
        plan = self.folder / name
        tools.succeed("bowline-compile", self.weights, *SIZES, *flags, "-o", plan)
        return plan

    def launch(self, *arguments, **environment):
        server = subprocess.Popen([tools.tool("bowline-serve"), *map(str, arguments), "--port", "0"],
                                  stderr=subprocess.PIPE, text=True,
                                  env={**os.environ, "BOWLINE_CACHE_DIR": str(self.folder / "cache"), **environment})
        self.addCleanup(server.stderr.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        return server

    def port_of(self, server):
        said = ""
        for line in server.stderr:
            if found := re.search(r"listening on http://127\.0\.0\.1:(\d+)$", line):
                return int(found[1])
            said += line
        self.fail(f"the server ended with {server.wait(tools.TIMEOUT_SECONDS)}: {said}")

    def serve(self, *flags):
        server = self.launch(self.plan, "--weights", self.weights, *flags)
        return server, self.port_of(server)

    def ask(self, port, path, **body):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=tools.TIMEOUT_SECONDS)
        connection.request("POST" if body else "GET", path, json.dumps({"temperature": 0, **body}) if body else None)
        reply = connection.getresponse()
        text = reply.read().decode()
        connection.close()
        self.assertEqual(reply.status, 200, text)
        return text

    def answers(self, port):
        return [json.loads(self.ask(port, "/v1/completions", prompt=prompt, max_tokens=12))["choices"][0]["text"]
                for prompt in PROMPTS]

    def end(self, server):
        server.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(tools.TIMEOUT_SECONDS), 0)

    def texts(self, plan, *flags):
        return [tools.succeed("bowline-run", plan, "--weights", self.weights, "--prompt", prompt, "--temperature", 0,
                              "--max-new-tokens", 12, "--quiet", *flags).decode().rstrip("\n") for prompt in PROMPTS]

    def test_all_ways_answer_as_one_rank(self):
        expected = self.texts(self.compile("one.plan"))
        self.assertEqual(self.texts(self.plan), expected)
        self.assertEqual(self.texts(self.plan, "--nproc", 2), expected)
        for flags in ([], ["--nproc", "2"]):
            with self.subTest(flags=flags):
                server, port = self.serve(*flags)
                self.assertEqual(self.answers(port), expected)
                self.end(server)

    def test_a_model_becomes_processes(self):
        # As bowline-compile has them; the server passes the rest on to its ranks.
        sizes = ["--max-context", "40", "--max-batch", "2", "--kv-blocks", "8", *tools.ONE_THREAD]
        server = self.launch(self.weights, *sizes, "--mesh", "tp=2", "--nproc", "2", "--served-model-name", "knot")
        port = self.port_of(server)
        self.assertEqual(json.loads(self.ask(port, "/v1/models"))["data"][0]["id"], "knot")
        self.assertEqual(self.answers(port), self.texts(self.plan))
        self.end(server)

    def test_ranks_that_others_start(self):
        meeting = f"file:{self.folder}/meeting"
        ranks = [self.launch(self.plan, "--weights", self.weights, "--rank", rank, "--world-size", 2, "--rendezvous",
                             meeting) for rank in (1, 0)]
        port = self.port_of(ranks[1])
        # A signal to another rank than that of the server changes nothing.
        ranks[0].send_signal(signal.SIGTERM)
        self.assertEqual(self.answers(port), self.texts(self.plan))
        self.end(ranks[1])
        self.assertEqual(ranks[0].wait(tools.TIMEOUT_SECONDS), 0)

    def test_a_rank_that_loads_longer_than_its_timeout(self):
        meeting = f"file:{self.folder}/meeting"
        ranks = [self.launch(self.plan, "--weights", self.weights, "--rank", rank, "--world-size", 2, "--rendezvous",
                             meeting, "--timeout", 4, **(tools.with_slow_files("model.safetensors", 6) if rank == 1 else {}))
                 for rank in (1, 0)]
        self.assertEqual(self.answers(self.port_of(ranks[1])), self.texts(self.plan))
        self.end(ranks[1])
        self.assertEqual(ranks[0].wait(tools.TIMEOUT_SECONDS), 0)

    def test_ranks_wait_longer_than_their_timeout(self):
        for flags in ([], ["--nproc", "2"]):
            with self.subTest(flags=flags):
                server, port = self.serve(*flags, "--timeout", "4")
                self.answers(port)
                time.sleep(5)
                self.answers(port)
                self.end(server)

    def test_a_rank_that_dies_ends_the_server(self):
        server, port = self.serve("--nproc", "2")
        self.answers(port)
        children = subprocess.run(["ps", "-o", "pid=,args=", "--ppid", str(server.pid)], check=True, capture_output=True,
                                  text=True).stdout.splitlines()
        other, = (int(line.split()[0]) for line in children if " --rank 1 " in line)
        os.kill(other, signal.SIGKILL)
        _, said = server.communicate(timeout=tools.TIMEOUT_SECONDS)
        self.assertEqual(server.returncode, 3, said)
        self.assertRegex(said, rf"(?m)^bowline-serve: error: rank 1 \(pid {other}\) was ended by signal 9")
        self.assertNotIn("bowline-run", said)

    def refuse(self, message, *arguments, **environment):
        server = self.launch(*arguments, **environment)
        _, said = server.communicate(timeout=tools.TIMEOUT_SECONDS)
        self.assertEqual(server.returncode, 1, said)
        self.assertIn(message, said)

    def test_wrong_calls(self):
        plan, weights = self.plan, ["--weights", self.weights]
        self.refuse("is for 2 ranks (tp=2), but --nproc says that 3 processes run it", plan, *weights, "--nproc", 3)
        self.refuse("WORLD_SIZE says that 1 process runs it", plan, *weights, RANK="0", WORLD_SIZE="1")
        self.refuse("compile it once with --mode serve --mesh tp=2", self.weights, RANK="0", WORLD_SIZE="2",
                    MASTER_ADDR="127.0.0.1", MASTER_PORT="9")
        self.refuse("leave out --timeout", self.compile("one.plan"), *weights, "--timeout", 3)
        self.refuse("--nproc starts all ranks", plan, *weights, "--nproc", 2, "--rank", 0)
        self.refuse("which --mode serve does not divide", self.weights, "--mesh", "dp=2")
        # A product of ranks beyond 64 bits.
        self.refuse("--mesh", self.weights, "--mesh", "a=65536,b=65536,c=65536,d=65536")


if __name__ == "__main__":
    tools.main()
