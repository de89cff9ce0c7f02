"""Talks with a server of OpenAI's API, or with a runner over its standard input, and says when tokens came."""

import contextlib
import http.client
import json
import math
import os
import signal
import socket
import statistics
import subprocess
import threading
import time
from typing import NamedTuple

from peers import processes


class Failed(Exception):
    """A candidate's process failed or ran past its time; the message is for the table."""


class Answers(NamedTuple):
    """Of requests that were sent together, each a list with an entry per request; seconds count from the sending."""
    first_s: list
    last_s: list
    tokens: list
    prompt_tokens: list
    texts: list


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def read_events(lines, now, times=None):
    """(seconds of the first text, of the last one, tokens, tokens of the prompt, text) of a stream of events. Appends the
    seconds of each text to `times`."""
    first = last = None
    usage, text = {}, ""
    events = 0
    for line in lines:
        line = line.strip()
        if not line.startswith(b"data: ") or line == b"data: [DONE]":
            continue
        event = json.loads(line[6:])
        if "error" in event:
            raise Failed(f"the server says: {event['error'].get('message', event['error'])}")
        usage = event.get("usage") or usage
        piece = "".join(choice.get("text") or "" for choice in event.get("choices", []))
        if piece:
            last = now()
            first = last if first is None else first
            text += piece
            events += 1
            if times is not None:
                times.append(last)
    if first is None:
        raise Failed("an answer without a token")
    return first, last, usage.get("completion_tokens", events), usage.get("prompt_tokens"), text


def pause_of(times, sent, first):
    """The 99th percentile of the seconds between two times of a list that begin before `first` and end behind `sent`, over
    the median of those before."""
    pairs = [pair for each in times for pair in zip(each, each[1:])]
    before = [b - a for a, b in pairs if b <= sent]
    meanwhile = sorted(b - a for a, b in pairs if b > sent and a < first)
    if not before or not meanwhile:
        raise Failed("no stream went on while the long prompt was computed")
    return meanwhile[math.ceil(0.99 * len(meanwhile)) - 1] / statistics.median(before)


class Session:
    """A candidate's process, alone in a session so that all of it can be ended, with a time after which it is killed."""

    def __init__(self, command, log, processors, limit_s, variables=None):
        self.log, self.killed, self.others, self.command = log, False, None, list(map(str, command))
        self.load, self.start, self.busy_s, self.own_s = processes.load_average(), time.monotonic(), \
            processes.machine_busy_s(), time.process_time()
        with open(log, "wb") as output:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=self.output(output), stderr=output,
                                            env=dict(os.environ, **(variables or {})), start_new_session=True,
                                            preexec_fn=lambda: os.sched_setaffinity(0, processors))
        self.timer = threading.Timer(max(0.0, limit_s), self.give_up)
        self.timer.daemon = True
        self.timer.start()

    def output(self, log):
        return log

    def give_up(self):
        self.others = self.others_cpus()  # while the processes can still be asked
        self.killed = True
        self.kill()

    def kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def failure(self):
        if self.killed:
            return Failed("ran past its time")
        with open(self.log, encoding="utf-8", errors="replace") as file:
            lines = [line.strip() for line in file if line.strip()]
        said = next((line for line in reversed(lines) if "rror" in line or "ASSERT" in line), (lines or ["nothing"])[-1])
        return Failed(f"ended with exit code {self.process.poll()}, saying: {said[:160]}".replace("|", "/"))

    def pids(self):
        return [self.process.pid, *processes.others_in_session(self.process.pid)]

    def peak_bytes(self):
        """The sum over the processes of the tree of the peak resident memory of each."""
        total = 0
        for pid in self.pids():
            try:
                with open(f"/proc/{pid}/status", encoding="utf-8") as file:
                    total += sum(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM:"))
            except OSError:
                continue
        return total

    def others_cpus(self):
        """Processors that neither the candidate nor this program kept busy since the start."""
        if self.others is not None:
            return self.others
        own = sum(filter(None, map(processes.process_s, self.pids()))) + time.process_time() - self.own_s
        return max(0.0, (processes.machine_busy_s() - self.busy_s - own) / (time.monotonic() - self.start))

    def stop(self):
        self.timer.cancel()
        self.kill()
        processes.end_session(self.process)
        for pipe in filter(None, (self.process.stdin, self.process.stdout)):
            with contextlib.suppress(OSError):
                pipe.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


class Runner(Session):
    """A program that reads requests as lines and answers with lines, as run_llama.py does."""

    def output(self, log):
        return subprocess.PIPE

    def generate(self, prompts, tokens):
        try:
            self.process.stdin.write(json.dumps({"prompts": prompts, "tokens": tokens}).encode() + b"\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except OSError:
            line = b""
        if not line:
            self.process.wait()
            raise self.failure()
        return Answers(**json.loads(line))

    def first(self, prompt):
        """(the answer to the first request, seconds from the start to its first token)"""
        before = time.monotonic()
        answers = self.generate([prompt], 2)
        # The first request's wait includes loading; the runner's own count does not.
        taken = time.monotonic() - before - (answers.last_s[0] - answers.first_s[0])
        return answers, before - self.start + taken


class Server(Session):
    """A server of OpenAI's API at a port."""

    def __init__(self, command, port, *more, **options):
        self.port = port
        super().__init__(command, *more, **options)

    def ask(self, prompt, tokens, now, times=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        body = {"prompt": prompt, "max_tokens": tokens, "temperature": 0, "stream": True,
                "stream_options": {"include_usage": True}}
        connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
        reply = connection.getresponse()
        if reply.status != 200:
            raise Failed(f"the server replied {reply.status}: {reply.read()[:160].decode(errors='replace')}")
        return read_events(reply, now, times)

    def pause(self, prompts, tokens, long_prompt):
        """The 99th percentile of the seconds between two texts of streams while a long prompt is computed, from its sending
        to its first token, over the median before it came. It comes when the streams have a third of their tokens."""
        start, times = time.monotonic(), [[] for _ in prompts]

        def now():
            return time.monotonic() - start

        threads = [threading.Thread(target=lambda i=i: self.ask(prompts[i], tokens, now, times[i])) for i in range(len(prompts))]
        for thread in threads:
            thread.start()
        while any(len(each) < tokens // 3 for each in times) and any(thread.is_alive() for thread in threads):
            time.sleep(0.001)
        sent = now()
        first = self.ask(long_prompt, 2, now)[0]
        for thread in threads:
            thread.join()
        if self.killed:
            raise self.failure()
        return pause_of(times, sent, first)

    def generate(self, prompts, tokens):
        start = time.monotonic()
        results = [None] * len(prompts)

        def work(i):
            try:
                results[i] = self.ask(prompts[i], tokens, lambda: time.monotonic() - start)
            except Failed as error:
                results[i] = error
            except (OSError, http.client.HTTPException):
                results[i] = None

        threads = [threading.Thread(target=work, args=(i,)) for i in range(len(prompts))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for result in results:
            if result is None:
                raise self.failure()
            if isinstance(result, Failed):
                raise self.failure() if self.killed else result
        return Answers(*map(list, zip(*results)))

    def first(self, prompt):
        while self.process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                break
            except OSError:
                time.sleep(0.005)
        else:
            raise self.failure()
        ready = time.monotonic()
        answers = self.generate([prompt], 2)
        return answers, ready - self.start + answers.first_s[0]
