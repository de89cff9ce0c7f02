#!/usr/bin/env python3
"""bowline-serve at full size, for `make check-serve`: 500 streams that are all open at once, and five times the requests that
it can answer. Overloaded, it has to answer as much as at its capacity.

The second test measures time, so that `make check` has neither of them."""

import asyncio
import json
import pathlib
import random
import re
import signal
import time

import served_model
import tools

STREAMS = 500
BATCH, QUEUE = 16, 16
TOKENS = 64  # of an answer under load
OVERLOAD = 5
SECONDS, ROUNDS = 4, 6
LEAST_TOKENS = 2 * BATCH * TOKENS  # that a rate is measured by
LEAST_RATIO = 0.8
RESIDENT_KILOBYTES = 8192


async def request(port, **fields):
    """A reader that has read the status of an answer, its writer, and the status."""
    body = json.dumps({"temperature": 0, **fields}).encode()
    head = f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(head.encode() + body)
    first = await reader.readline()
    return reader, writer, int(first.split()[1])


async def complete(port, **fields):
    """The status, headers and object of an answer."""
    reader, writer, status = await request(port, **fields)
    try:
        head, _, body = (await reader.read()).decode().partition("\r\n\r\n")
    finally:
        writer.close()
    return status, head, json.loads(body)


async def metrics(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    text = (await reader.read()).decode()
    writer.close()
    # Each metric names the model too.
    text = re.sub(r'model_name="[^"]*",?', "", text).replace(",}", "}").replace("{}", "")
    return {name: float(value) for name, value in re.findall(r"^(bowline_\S+) (\S+)$", text, re.MULTILINE)}


async def until_idle(port):
    while True:
        found = await metrics(port)
        if found["bowline_num_requests_running"] == found["bowline_num_requests_waiting"] == 0:
            return found
        await asyncio.sleep(0.01)


class Load:
    """Requests until `ends`. Counts those that are answered and those that are refused."""

    def __init__(self, port, seed):
        self.port, self.draws = port, random.Random(seed)
        self.answered = self.refused = 0
        self.ends = False

    async def send(self):
        prompt = "".join(self.draws.choices("abcdefgh ", k=16))
        status, head, answer = await complete(self.port, prompt=prompt, max_tokens=TOKENS)
        if status == 429:
            assert re.search(r"\r\nRetry-After: [1-9]\d*(\r\n|$)", head), head
            assert answer["error"]["code"] == "rate_limit_exceeded", answer
            self.refused += 1
            return
        assert status == 200, answer
        assert answer["usage"]["completion_tokens"] == TOKENS, answer
        self.answered += 1

    async def fill(self):
        """As many requests as are computed side by side: each client sends its next one when the last one is answered."""
        async def go_on():
            while not self.ends:
                await self.send()

        await asyncio.gather(*(go_on() for _ in range(BATCH)))

    async def arrive(self, rate):
        """So many requests a second, whatever becomes of those before."""
        tasks, begin = [], time.monotonic()
        while not self.ends:
            await asyncio.sleep(max(0, begin + len(tasks) / rate - time.monotonic()))
            tasks.append(asyncio.create_task(self.send()))
        await asyncio.gather(*tasks)

    async def measure(self, requests):
        """Tokens a second of all requests, from when the batch is full on, however slow the machine is. Nobody leaves, so that
        each token is of an answer that a client gets in full."""
        name = "bowline_generation_tokens_total"
        sending = asyncio.create_task(requests)

        async def until(condition):
            while not condition(found := await metrics(self.port)):
                if sending.done():
                    await sending
                await asyncio.sleep(0.05)
            return found[name], time.monotonic()

        tokens, begin = await until(lambda found: found["bowline_num_requests_running"] == BATCH)
        more, end = await until(lambda found: time.monotonic() > begin + SECONDS and found[name] >= tokens + LEAST_TOKENS)
        self.ends = True
        await sending
        return (more - tokens) / (end - begin)


class ServeOverload(tools.ToolTest):
    def start(self, weights, context, batch, queue):
        plan = self.folder / "s.plan"
        tools.succeed("bowline-compile", weights, "--mode", "serve", "--max-context", context, "--max-batch", batch,
                      "--kv-blocks", batch * context // 16, *tools.ONE_THREAD, "-o", plan)
        return served_model.start(self, plan, "--weights", weights, "--max-queue", queue)

    def resident(self, server):
        status = pathlib.Path(f"/proc/{server.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1])

    def end(self, server, port):
        """Nothing is left of the load, and the server ends as it should."""
        found = asyncio.run(until_idle(port))
        self.assertEqual(found["bowline_kv_cache_usage_perc"], 0)
        self.assertEqual(found['bowline_request_success_total{finished_reason="error"}'], 0)
        server.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(tools.TIMEOUT_SECONDS), 0)
        self.assertEqual(server.stderr.read(), "")

    async def stream_all(self, port):
        """The texts of streams that all have begun before one of them is read to its end."""
        begun = asyncio.Event()
        waiting = STREAMS

        async def stream(i):
            nonlocal waiting
            reader, writer, status = await request(port, prompt=f"{i % 20:02}" * 8, max_tokens=None, stream=True)
            self.assertEqual(status, 200)
            await reader.readuntil(b"\ndata: ")
            first = await reader.readline()
            waiting -= 1
            if waiting == 0:
                begun.set()
            await begun.wait()
            rest = (await reader.read()).decode()
            writer.close()
            events = [first.decode(), *re.findall(r"^data: (.*)$", rest, re.MULTILINE)]
            self.assertEqual(events.pop(), "[DONE]")
            choices = [json.loads(event)["choices"][0] for event in events]
            self.assertIn(choices[-1]["finish_reason"], ("stop", "length"))
            return "".join(choice["text"] for choice in choices)

        return await asyncio.gather(*(stream(i) for i in range(STREAMS)))

    def test_500_streams_at_once(self):
        server, port = self.start(served_model.write_model(self.folder), 64, STREAMS, STREAMS)
        alone = [asyncio.run(complete(port, prompt=f"{i:02}" * 8))[2]["choices"][0]["text"] for i in range(20)]
        kilobytes = []
        for _ in range(4):
            texts = asyncio.run(self.stream_all(port))
            kilobytes.append(self.resident(server))
            for i, text in enumerate(texts):
                self.assertEqual(text, alone[i % 20], i)
        self.assertLess(kilobytes[3] - kilobytes[1], RESIDENT_KILOBYTES, kilobytes)
        print(f"{STREAMS} streams at once, four times; resident kB: {kilobytes}")
        self.end(server, port)

    def test_goodput_under_overload(self):
        server, port = self.start(served_model.write_random_model(self.folder), 256, BATCH, QUEUE)
        at_capacity, overloaded, refused, kilobytes = [], [], 0, []
        # In turns, so that other load of the machine slows both.
        for round_ in range(ROUNDS):
            capacity, overload = Load(port, 2 * round_), Load(port, 2 * round_ + 1)
            at_capacity.append(asyncio.run(capacity.measure(capacity.fill())))
            self.assertEqual(capacity.refused, 0)
            overloaded.append(asyncio.run(overload.measure(overload.arrive(OVERLOAD * at_capacity[-1] / TOKENS))))
            refused += overload.refused
            kilobytes.append(self.resident(server))
        ratio = sum(overloaded) / sum(at_capacity)
        print(f"{sum(at_capacity) / ROUNDS:.0f} tokens/s at capacity; {OVERLOAD} times its requests get {ratio:.2f} of that, and "
              f"{refused} times 429; resident kB: {kilobytes}")
        self.assertGreater(refused, ROUNDS * QUEUE)
        self.assertGreaterEqual(ratio, LEAST_RATIO)
        self.assertLess(kilobytes[-1] - kilobytes[ROUNDS // 2], RESIDENT_KILOBYTES, kilobytes)
        self.end(server, port)


if __name__ == "__main__":
    tools.main()
