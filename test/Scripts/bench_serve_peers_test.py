#!/usr/bin/env python3
"""Tests of scripts/bench-serve-peers.py without a model: parsing, arithmetic, tables, goals, and candidates that are fakes."""

import contextlib
import importlib.util
import io
import json
import pathlib
import sys
import tempfile
import types
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
specification = importlib.util.spec_from_file_location("bench_serve_peers", ROOT / "scripts/bench-serve-peers.py")
bench = importlib.util.module_from_spec(specification)
specification.loader.exec_module(bench)
from peers import serve_client, serve_install, serve_results  # pylint: disable=wrong-import-position,wrong-import-order

Answers = serve_client.Answers

# Answers as run_llama.py does, each token 1 ms after the other; a prompt that says "fall" ends the process.
FAKE_RUNNER = r"""
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    many, n = len(request["prompts"]), request["tokens"]
    if any("fall" in prompt for prompt in request["prompts"]):
        sys.exit("the error of the fake")
    print(json.dumps({"first_s": [0.010] * many, "last_s": [0.010 + 0.001 * (n - 1)] * many, "tokens": [n - WRONG] * many,
                      "prompt_tokens": [len(p.split()) for p in request["prompts"]], "texts": ["ab"] * many}), flush=True)
"""
FAKE_SERVER = r"""
import http.server, json, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "refuse" in request["prompt"]:
            self.send_response(400); self.end_headers(); self.wfile.write(b"no such model"); return
        self.send_response(200); self.end_headers()
        usage = {"prompt_tokens": len(request["prompt"].split()), "completion_tokens": request["max_tokens"]}
        for event in [{"choices": [{"text": " a"}]}] * request["max_tokens"] + [{"choices": [], "usage": usage}]:
            self.wfile.write(b"data: " + json.dumps(event).encode() + b"\n\n")
        self.wfile.write(b"data: [DONE]\n\n")
    def log_message(self, *_): pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


def row(title, ours, weight_bytes=100_000_000, text="abc", weights="Q4_1", **values):
    return {"name": title, "title": title, "ours": ours, "weights": weights, "weight_bytes": weight_bytes, "failed": [],
            "others_cpus": [0.5], "text": text, "values": {key.replace("_", "/"): value for key, value in values.items()}}


class Numbers(unittest.TestCase):
    def test_rates(self):
        answers = Answers([0.5, 0.6], [2.5, 4.0], [101, 99], [512, 16], ["", ""])
        self.assertEqual(serve_results.prefill_rate(answers), 1024)
        self.assertEqual(serve_results.decode_rate(answers), 50)
        self.assertEqual(serve_results.stream_rate(answers), 50)
        self.assertEqual(serve_results.bound(20, 100_000_000), 200)

    def test_cells(self):
        self.assertEqual(serve_results.cell([], 1), "-")
        self.assertEqual(serve_results.cell([2.04], 1), "2.0")
        self.assertEqual(serve_results.cell([3, 1, 2.5], 1), "2.5 (1.0 to 3.0)")

    def test_bytes_of_weights(self):
        sizes = bench.weight_bytes_of("plan x\nparameters: 1000 in 7 tensors\n", 600)
        self.assertEqual(sizes, {"f32": 4000, "bf16": 2000, "as-stored": 600})
        self.assertIsNone(bench.weight_bytes_of("parameters:", 600))

    def test_events(self):
        times = iter([1.0, 2.0])
        lines = [b": comment\n", b'data: {"choices": [{"text": " a"}]}\n', b"\n", b'data: {"choices": [{"text": ""}]}\n',
                 b'data: {"choices": [{"text": " b"}]}\n', b'data: {"choices": [], "usage": {"completion_tokens": 7, '
                 b'"prompt_tokens": 3}}\n', b"data: [DONE]\n"]
        self.assertEqual(serve_client.read_events(lines, lambda: next(times)), (1.0, 2.0, 7, 3, " a b"))
        with self.assertRaisesRegex(serve_client.Failed, "without a token"):
            serve_client.read_events([b"data: [DONE]\n"], lambda: 0)
        with self.assertRaisesRegex(serve_client.Failed, "too long"):
            serve_client.read_events([b'data: {"error": {"message": "too long"}}\n'], lambda: 0)

    def test_prompts(self):
        texts = bench.prompts(32, 16, 1)
        self.assertEqual(texts, bench.prompts(32, 16, 1))
        self.assertEqual(len(set(texts)), 32)
        self.assertNotEqual(texts, bench.prompts(32, 16, 2))
        self.assertEqual({len(text.split(" ")) - 1 for text in texts}, {16})

    def test_the_reason_that_pip_has(self):
        log = ("Collecting x\nERROR: Ignored the following versions\nERROR: Could not find a version that satisfies the "
               "requirement torch==2+cpu (from versions: 1, 2)\nERROR: No matching distribution found for torch\n")
        self.assertEqual(serve_install.reason_of(log),
                         "Could not find a version that satisfies the requirement torch==2+cpu")
        self.assertEqual(serve_install.reason_of("a\nlast\n"), "last")


class Goals(unittest.TestCase):
    def met(self, begin, *rows, rates=None):
        found = [met for line, met in serve_results.goals(rows, rates or {}) if line.startswith(begin)]
        self.assertEqual(len(found), 1, begin)
        return found[0]

    def test_peers_of_the_same_weights_are_compared(self):
        rows = [row("A", True, prefill_2=[250]), row("B", True, prefill_2=[100], weights="bf16"),
                row("P", False, prefill_2=[190]), row("Q", False, prefill_2=[90], weights="bf16")]
        rates = {2: 20}
        self.assertTrue(self.met("Q4_1: prefill, 2", *rows, rates=rates))
        self.assertFalse(self.met("bf16: prefill, 2", *rows, rates=rates))

    def test_either_way_is_better(self):
        rows = [row("A", True, first=[4], memory=[90]), row("B", True, first=[9], memory=[20]),
                row("P", False, first=[3], memory=[20])]
        self.assertFalse(self.met("first token", *rows))
        self.assertTrue(self.met("peak memory", *rows))

    def test_decoding_is_faster_or_reads_as_fast_as_can_be(self):
        for ours, theirs, met in (([131], [100], True), ([129], [100], False), ([171], [170], True), ([169], [168], False),
                                  ([171], [], True), ([169], [], False), ([], [100], None)):
            self.assertEqual(self.met("Q4_1: decode, 2", row("A", True, decode_2=ours), row("P", False, decode_2=theirs),
                                      rates={2: 20}), met, (ours, theirs))

    def test_streams(self):
        rows = [row("A", True, streams_8=[501], decode_2=[100], streams_32=[600]),
                row("llama", False, streams_32=[599]), dict(row("vLLM", False, streams_32=[301], weights="bf16"), name="vllm")]
        self.assertTrue(self.met("Q4_1: 8 streams", *rows))
        self.assertFalse(self.met("32 streams", *rows))
        rows[2]["values"]["streams/32"] = [299]
        self.assertTrue(self.met("32 streams", *rows))
        self.assertIsNone(self.met("32 streams", *rows[:2]))

    def test_limits(self):
        self.assertTrue(self.met("start", row("A", True, start=[0.3])))
        self.assertFalse(self.met("start", row("A", True, start=[0.31])))
        self.assertTrue(self.met("pauses", row("A", True, pause=[2])))
        self.assertFalse(self.met("pauses", row("A", True, pause=[2.1])))

    def test_pauses(self):
        # Before 0.1 each, then 0.2 and once 0.5; tokens behind the first token of the long prompt do not count.
        times = [[0.1, 0.2, 0.3, 0.5, 0.7, 9.0], [0.1, 0.2, 0.3, 0.8]]
        self.assertAlmostEqual(serve_client.pause_of(times, 0.3, 0.6), 5)
        with self.assertRaisesRegex(serve_client.Failed, "no stream went on"):
            serve_client.pause_of([[0.1, 0.2]], 0.3, 0.6)

    def test_what_is_missed_or_not_measured_is_no_success(self):
        good = {key.replace("/", "_"): [100.0] for key in serve_results.MEASURES}
        ours = dict(good, prefill_1=[130.0], prefill_2=[130.0], decode_1=[130.0], decode_2=[130.0], streams_8=[650.0],
                    streams_32=[200.0], pause=[2.0], start=[0.3])
        peer = dict(row("P", False, **good), name="vllm")
        result = {"rows": [row("A", True, **ours), peer], "read_gb_per_s": {1: 100, 2: 100}, "load_before": 1, "load_after": 2,
                  "processors": 2}
        self.assertEqual(serve_results.status(result), 0)
        for key, (value,) in ours.items():
            worse = value * (0.9 if serve_results.MEASURES[key.replace("_", "/")].more_is_better else 1.1)
            for bad_value in ([worse], []):
                bad = dict(result, rows=[row("A", True, **dict(ours, **{key: bad_value})), peer])
                self.assertEqual(serve_results.status(bad), 2, (key, bad_value))
        text = serve_results.markdown(dict(result, rows=[*result["rows"], dict(row("Q", False), failed=["too old"])]))
        self.assertIn("- Q: too old\n", text)
        self.assertIn("goal 1.3: met", text)
        self.assertIn("| P |", text)
        self.assertNotIn("| Q |", text)

    def test_nothing_measured_is_said(self):
        text = serve_results.markdown({"rows": [dict(row("P", False), failed=["late"])], "read_gb_per_s": {2: 10},
                                       "load_before": 1, "load_after": 2, "processors": 2})
        self.assertTrue(text.startswith("Nothing was measured.\n"))
        self.assertIn("- P: late\n", text)

    def test_texts_that_differ_are_seen(self):
        ours = row("A", True, text="one two")
        self.assertEqual(serve_results.agreement(ours, ours), "compared with")
        self.assertEqual(serve_results.agreement(row("P", False, text="one six"), ours), "4 of 7")
        self.assertEqual(serve_results.agreement(row("P", False, text="one two"), ours), "7 of 7")


class Candidates(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def bench(self, *more):
        return bench.Bench(bench.parse_arguments(["--quick", *more]), self.folder)

    def runner(self, program, limit_s=60):
        return lambda _threads, log, processors, _limit: serve_client.Runner([sys.executable, "-c", program], log, processors,
                                                                             limit_s)

    def test_a_turn_of_a_runner(self):
        candidate = bench.Candidate("fake", "Fake", 1, self.runner(FAKE_RUNNER.replace("WRONG", "0")))
        with contextlib.redirect_stderr(io.StringIO()):
            self.bench().run([candidate])
        values = candidate.row["values"]
        self.assertEqual(candidate.row["failed"], [])
        self.assertEqual(set(values), {"start", "prefill/2", "decode/2", "first", "streams/8", "memory"})
        self.assertAlmostEqual(values["prefill/2"][0], 51200)
        self.assertAlmostEqual(values["decode/2"][0], 1000)
        self.assertAlmostEqual(values["first"][0], 10)
        self.assertAlmostEqual(values["streams/8"][0], 8 * 32 / 0.041)
        self.assertGreater(values["start"][0], 0)
        self.assertGreater(values["memory"][0], 1)

    def test_streams_that_end_early_are_noted(self):
        candidate = bench.Candidate("fake", "Fake", 1, None)
        session = types.SimpleNamespace(generate=lambda prompts, tokens: Answers(
            [0.5] * len(prompts), [2.0] * len(prompts), [tokens] * (len(prompts) - 1) + [3], [16] * len(prompts), []))
        self.bench().measure_streams(candidate, session, 8)
        self.assertEqual(candidate.row["values"], {"streams/8": [(7 * 32 + 3) / 2]})
        self.assertEqual(candidate.row["notes"], ["1 of 8 streams ended before 32 tokens"])

    def test_answers_that_are_too_short_are_no_measurement(self):
        candidate = bench.Candidate("fake", "Fake", 1, self.runner(FAKE_RUNNER.replace("WRONG", "1")))
        with contextlib.redirect_stderr(io.StringIO()):
            self.bench().run([candidate])
        self.assertEqual(candidate.row["values"], {})
        self.assertEqual(candidate.row["failed"], ["round 1, 2 threads: wrote 1 tokens instead of 2"])

    def test_a_runner_that_falls_and_one_that_is_late(self):
        with self.runner(FAKE_RUNNER)(2, self.folder / "log", bench.os.sched_getaffinity(0), 0) as session:
            with self.assertRaisesRegex(serve_client.Failed, "exit code 1, saying: the error of the fake"):
                session.generate(["fall"], 2)
        late = self.runner("import time; time.sleep(600)", 0.1)
        with late(2, self.folder / "log", bench.os.sched_getaffinity(0), 0) as session:
            with self.assertRaisesRegex(serve_client.Failed, "past its time"):
                session.generate(["a"], 2)

    def test_a_server(self):
        port = serve_client.free_port()
        with serve_client.Server([sys.executable, "-c", FAKE_SERVER, port], port, self.folder / "log",
                                 bench.os.sched_getaffinity(0), 60) as session:
            answers, seconds = session.first(" a b c")
            self.assertEqual((answers.tokens, answers.prompt_tokens, answers.texts), ([2], [3], [" a a"]))
            self.assertGreaterEqual(seconds, answers.first_s[0])
            answers = session.generate([" a", " a b"] * 4, 5)
            self.assertEqual((answers.tokens, answers.prompt_tokens), ([5] * 8, [1, 2] * 4))
            self.assertTrue(all(0 < a <= b for a, b in zip(answers.first_s, answers.last_s)))
            with self.assertRaisesRegex(serve_client.Failed, "replied 400: no such model"):
                session.generate(["refuse"], 2)

    def test_a_plan_that_does_not_compile_and_a_peer_without_a_driver_are_skipped(self):
        tool = self.folder / "bin/bowline-compile"
        tool.parent.mkdir()
        tool.write_text("#!/bin/sh\necho 'bowline-compile: error: no such type' >&2\nexit 1\n")
        tool.chmod(0o755)
        options = bench.parse_arguments(["--candidates", "vllm,as-stored", "--build-dir", str(self.folder)])
        install, serve_install.install = serve_install.install, lambda *_: (None, "there is no torch")
        try:
            with contextlib.redirect_stderr(io.StringIO()):
                candidates, skipped = bench.prepare(options, self.folder / "m.gguf", self.folder)
        finally:
            serve_install.install = install
        self.assertEqual(candidates, [])
        self.assertEqual([(r["name"], r["failed"]) for r in skipped],
                         [("as-stored", ["bowline-compile: error: no such type"]), ("vllm", ["there is no torch"])])
        json.dumps(skipped)

    def test_a_peer_that_does_not_install_in_time_or_at_all(self):
        python = self.folder / "ik_llama.cpp/bin/python"
        python.parent.mkdir(parents=True)
        made = types.SimpleNamespace(returncode=0)  # of python -m venv, and of looking for the module
        with unittest.mock.patch.object(serve_install, "has", return_value=False), \
                unittest.mock.patch.object(serve_install.subprocess, "run", return_value=made), \
                contextlib.redirect_stderr(io.StringIO()):
            for program, limit_s, reason in (("sleep 600", 0.1, "did not install within 0 s"),
                                             ("echo ERROR: no wheel; exit 1", 60, "does not install: no wheel"),
                                             ("exit 0", 60, "ik_llama_cpp does not load")):
                python.write_text(f"#!/bin/sh\n{program}\n")
                python.chmod(0o755)
                found, said = serve_install.install("ik_llama.cpp", self.folder, limit_s)
                self.assertIsNone(found)
                self.assertIn(reason, said)

    def test_arguments(self):
        quick = bench.parse_arguments(["--quick"])
        self.assertEqual((quick.threads, quick.streams, quick.rounds), ((2,), (8,), 1))
        self.assertLessEqual(quick.minutes, 5)
        with contextlib.redirect_stderr(io.StringIO()), self.assertRaises(SystemExit):
            bench.parse_arguments(["--candidates", "llama"])


if __name__ == "__main__":
    unittest.main()
