#!/usr/bin/env python3
"""bowline-serve under more load than it can take: clients that read everything, that read slowly, that leave at every
stage, and that send nonsense, at once. Nothing crashes, all blocks come back, and memory is flat. Nightly, 500 clients
send 10,000 requests."""

import asyncio
import collections
import json
import pathlib
import random
import re
import signal
import subprocess

import served_model
import tools

CONTEXT, BATCH, QUEUE = 64, 4, 16
CLIENTS, REQUESTS = (500, 10000) if tools.NIGHTLY else (24, 240)
STAGES = ["whole", "stream", "slowly", "leave connected", "leave in the head", "leave in the body", "leave unanswered",
          "leave in the stream", "nonsense"]
WEIGHTS = [6, 6, 1, 1, 1, 1, 2, 4, 1]


class Client:
    def __init__(self, port, seed):
        self.port = port
        self.draws = random.Random(seed)

    def request(self, stream):
        # Half of the prompts begin with the same block of the cache.
        prompt = self.draws.choice(["", "a" * 20]) + "".join(self.draws.choices("abc ", k=self.draws.randint(1, 20)))
        body = {"prompt": prompt, "max_tokens": self.draws.choice([1, 5, 20, None]), "stream": stream,
                "temperature": self.draws.choice([0, 0.7, 1]), "seed": 1, "stop": self.draws.choice([None, "e", ["th"]])}
        body = json.dumps(body).encode()
        head = f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
        return head.encode(), body

    async def send(self):
        """The outcome of a request: its stage, and the status of the answer or None where nobody waited for it."""
        stage, = self.draws.choices(STAGES, WEIGHTS)
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            return stage, await self.talk(stage, reader, writer)
        finally:
            writer.close()

    async def talk(self, stage, reader, writer):
        head, body = self.request(stage in ("stream", "slowly", "leave in the stream"))
        if stage == "leave connected":
            return None
        if stage == "leave in the head":
            writer.write(head[:self.draws.randrange(1, len(head))])
            return None
        if stage == "leave in the body":
            writer.write(head + body[:self.draws.randrange(len(body))])
            return None
        if stage == "nonsense":
            body = bytearray(body)
            for _ in range(self.draws.randint(1, 8)):
                body[self.draws.randrange(len(body))] = self.draws.randrange(256)
        writer.write(head + body)
        if stage == "leave unanswered":
            await writer.drain()
            return None
        first = await reader.readline()
        status = int(first.split()[1])
        if stage == "leave in the stream" and status == 200:
            await reader.read(self.draws.randint(1, 400))
            return None
        if stage == "slowly":
            while await reader.read(50):
                await asyncio.sleep(0.001)
            return status
        rest = (await reader.read()).decode()
        if status == 429:
            assert re.search(r"\r\nRetry-After: \d+\r\n", rest), rest
        elif stage == "stream" and status == 200:
            assert "data: [DONE]" in rest, rest
        elif stage == "whole" and status == 200:
            assert json.loads(rest.partition("\r\n\r\n")[2])["choices"][0]["finish_reason"] in ("stop", "length"), rest
        return status


class ServeLoad(tools.ToolTest):
    async def load(self, port, count, seed):
        """(stage, status) of `count` requests, and how many there are of each."""
        seeds = iter(range(seed, seed + count))
        ends = collections.Counter()

        async def go_on():
            for each in seeds:
                ends[await Client(port, each).send()] += 1

        await asyncio.gather(*(go_on() for _ in range(CLIENTS)))
        return ends

    async def metrics(self, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        text = (await reader.read()).decode()
        writer.close()
        text = re.sub(r'model_name="[^"]*",?', "", text).replace("{}", "")
        return {name: float(value) for name, value in re.findall(r"^(bowline_\S+) (\S+)$", text, re.MULTILINE)}

    async def until_idle(self, port):
        while True:
            metrics = await self.metrics(port)
            if metrics["bowline_num_requests_running"] == metrics["bowline_num_requests_waiting"] == 0:
                return metrics
            await asyncio.sleep(0.01)

    def test_load(self):
        weights = served_model.write_model(self.folder)
        plan = self.folder / "s.plan"
        # Fewer blocks than the batch could use: requests take them from each other.
        tools.succeed("bowline-compile", tools.MODELS / "llama-tiny", "--mode", "serve", "--max-context", CONTEXT,
                      "--max-batch", BATCH, "--buckets", 1, 8, 32, "--kv-blocks", 10, *tools.ONE_THREAD, "-o", plan)
        server = subprocess.Popen([tools.tool("bowline-serve"), plan, "--weights", weights, "--port", "0", "--max-queue",
                                   str(QUEUE)], stderr=subprocess.PIPE, text=True)
        self.addCleanup(server.stderr.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        port = int(re.fullmatch(r"listening on http://127\.0\.0\.1:(\d+)\n", server.stderr.readline())[1])

        def resident():
            status = pathlib.Path(f"/proc/{server.pid}/status").read_text()
            return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1])

        ends, kilobytes = collections.Counter(), []
        for part in range(4):
            ends += asyncio.run(self.load(port, REQUESTS // 4, tools.TEST_SEED * 1000003 + part * REQUESTS))
            metrics = asyncio.run(self.until_idle(port))
            self.assertEqual(metrics["bowline_kv_cache_usage_perc"], 0)
            kilobytes.append(resident())
        self.assertIsNone(server.poll())
        by_stage = collections.defaultdict(collections.Counter)
        for (stage, status), count in ends.items():
            by_stage[stage][status] += count
        for stage in ("whole", "stream", "slowly"):
            self.assertLessEqual(set(by_stage[stage]), {200, 429}, by_stage)
            self.assertGreater(by_stage[stage][200], 0, by_stage)
        self.assertLessEqual(set(by_stage["nonsense"]), {200, 400, 429}, by_stage)
        self.assertGreater(by_stage["nonsense"][400], 0, by_stage)
        self.assertGreater(metrics["bowline_prefix_cache_hits_total"], 0)
        self.assertEqual(metrics['bowline_request_success_total{finished_reason="error"}'], 0)
        # Each part sees the same load: buffers of allocators grow in the first, and nothing does in the last.
        self.assertLess(kilobytes[3] - kilobytes[1], 4096, kilobytes)
        server.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(tools.TIMEOUT_SECONDS), 0)
        self.assertEqual(server.stderr.read(), "")
        if tools.NIGHTLY:
            print({stage: dict(counts) for stage, counts in by_stage.items()}, "kB:", kilobytes, metrics)


if __name__ == "__main__":
    tools.main()
