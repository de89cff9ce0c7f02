#!/usr/bin/env python3
"""Plans for cards, run from end to end on the stand-in for NVIDIA's driver: with the losses of the plans of processors,
and with CUDA graphs, whose commands the stand-in runs in random order but for their edges, the same bits as without."""

import json

import tools

# The models and flags of training runs, with several streams, and with ranks that share the card.
STRATEGIES = {
    "one rank": ("llama-tiny", []),
    "microbatches": ("gpt2-tiny", ["--microbatches", "3"]),
    "two runs": ("qwen3-tiny", ["--runs-in-flight", "2"]),
    "bf16": ("mistral-tiny", ["--dtype", "bf16"]),
    "clipped, scheduled": ("qwen2-tiny", ["--lr-schedule", "cosine", "--warmup-steps", "2", "--decay-steps", "5"]),
    "dp": ("llama-tied", ["--mesh", "dp=3", "--microbatches", "1"]),
    "tp": ("llama-tiny", ["--mesh", "tp=2"]),
    "pp": ("gpt2-tiny", ["--mesh", "pp=2", "--microbatches", "3"]),
    "zero": ("llama-tiny", ["--mesh", "dp=3", "--zero", "3", "--runs-in-flight", "2"]),
}
# Two of the other strategies train these features, too.
NIGHTLY_STRATEGIES = {"bf16", "clipped, scheduled", "tp"}
STEPS = 4
# Times go through microseconds of a double.
CLOCK_US = 1e-3

# GPT-2 with rows of multiples of 8 elements, for which cuBLASLt keeps the inputs of GELU.
ALIGNED = {"n_embd": 48, "n_inner": 64, "n_head": 3}


class CudaStandIn(tools.ToolTest):
    def compile(self, model, plan, *flags):
        tools.compile_emulated(model, plan, *flags)
        report = tools.succeed("bowline-check", plan).decode()
        self.assertEqual(report.splitlines()[-1], "sound")
        self.assertIn("communications follow one another by streams and events", report)
        return plan

    def run_plan(self, plan, driver, *arguments, notes=(), **stand_in):
        """stdout; the notes, apart from those about weights, contain `notes`, one each."""
        done = tools.start("bowline-run", plan, "--driver", driver, *arguments, env={**tools.with_stand_ins(), **stand_in})
        message = done.stderr.decode()
        self.assertEqual(done.returncode, 0, message)
        said = [line for line in message.splitlines() if "note:" in line and "note: weights:" not in line]
        self.assertEqual(len(said), len(notes), message)
        for line, note in zip(said, notes):
            self.assertIn(note, line)
        return done.stdout

    def train(self, plan, driver, *arguments, **options):
        """Metrics without times, and how long the host took to issue each step."""
        metrics = self.folder / "metrics.jsonl"
        metrics.unlink(missing_ok=True)
        self.run_plan(plan, driver, "--data", tools.TOKENS, "--steps", STEPS, "--metrics", metrics, *arguments,
                      **options)
        lines = tools.metrics_of(metrics)
        host = [line["host_ms"] for line in tools.metrics_of(metrics, without=()) if "host_ms" in line]
        return lines, host

    def test_losses_with_graphs_are_those_without(self):
        for name, (model, flags) in STRATEGIES.items():
            if name in NIGHTLY_STRATEGIES and not tools.NIGHTLY:
                continue
            with self.subTest(strategy=name):
                flags = [*tools.TRAIN_SHAPES[model], *flags]
                plan = self.compile(model, self.folder / "x.plan", *flags)
                arguments = ["--eval-data", tools.TOKENS, "--eval-every", "2", "--eval-batches", "3"]
                streams, host = self.train(plan, "cuda:device=0,graphs=0", *arguments)
                self.assertEqual(len(host), STEPS)
                graphs, host = self.train(plan, "cuda:device=0,graphs=1", *arguments)
                self.assertEqual(len(host), STEPS)
                self.assertEqual(graphs, streams)
                self.assertEqual(len(graphs), STEPS + STEPS // 2)

    def test_losses_are_those_of_processors(self):
        for name in ("one rank", "microbatches", "pp"):
            with self.subTest(strategy=name):
                model, flags = STRATEGIES[name]
                plan = self.compile(model, self.folder / "x.plan", *tools.TRAIN_SHAPES[model], *flags)
                own, _ = self.train(plan, "cuda:device=0")
                tools.compile_train(model, self.folder / "cpu.plan", *flags)
                expected, host = self.train(self.folder / "cpu.plan", "cpu")
                self.assertEqual(host, [])
                for ours, theirs in zip(own, expected, strict=True):
                    self.assertAlmostEqual(float(ours["loss"]), float(theirs["loss"]), delta=1e-3)

    def test_attention_by_cudnn(self):
        models = [("mistral-tiny", 64), ("llama-tiny", 8), ("qwen3-tiny", 24)]
        for model, head_dim in models if tools.NIGHTLY else models[:1]:
            with self.subTest(model=model):
                # Heads of the test models have none of the sizes that cuDNN takes.
                config = json.loads((tools.MODELS / model / "config.json").read_text())
                (self.folder / model).mkdir()
                (self.folder / model / "config.json").write_text(json.dumps({**config, "head_dim": head_dim}))
                plan = self.compile(self.folder / model, self.folder / "x.plan", *tools.TRAIN_SHAPES[model],
                                    "--dtype", "bf16")
                cudnn, _ = self.train(plan, "cuda:device=0,graphs=0,attention=cudnn")
                graphs, _ = self.train(plan, "cuda:device=0,attention=cudnn,graphs=1")
                self.assertEqual(graphs, cudnn)
                own, _ = self.train(plan, "cuda:device=0,graphs=0,attention=own")
                self.assertNotEqual(own, cudnn)
                for ours, theirs in zip(own, cudnn, strict=True):
                    self.assertAlmostEqual(float(ours["loss"]), float(theirs["loss"]), delta=1e-2)
                # The driver uses its own kernels without a choice, whatever cuDNN has.
                self.assertEqual(self.train(plan, "cuda:device=0,graphs=0")[0], own)
                self.assertEqual(self.train(plan, "cuda:device=0,graphs=0,attention=auto")[0], own)
                refused = tools.start("bowline-run", plan, "--driver", "cuda:device=0,graphs=0,attention=cudnn", "--data", tools.TOKENS,
                                      "--steps", STEPS, env={**tools.with_stand_ins(), "BOWLINE_STAND_IN_CUDNN_REFUSES": "1"})
                self.assertNotEqual(refused.returncode, 0)
                self.assertIn("attention=cudnn, but cuDNN has no kernel for it", refused.stderr.decode())

    def epilogues(self, plan):
        """Of the products of a plan, by name."""
        kernels = json.loads(tools.succeed("bowline-inspect", plan, "--kernels", "--json"))["kernels"]
        return {kernel["epilogue"] for kernel in kernels if "epilogue" in kernel}

    def notes_of_epilogues(self, plan, refused):
        """A note for each epilogue that the library refuses, which names the kernels that have it."""
        kernels = json.loads(tools.succeed("bowline-inspect", plan, "--kernels", "--json"))["kernels"]
        notes = []
        for name in sorted(refused, key=repr):
            numbers = [str(i) for i, kernel in enumerate(kernels) if kernel.get("epilogue") == name]
            self.assertGreater(len(numbers), 0)
            notes.append(f"note: kernel{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}: the epilogue '{name}' of")
        return notes

    def test_losses_with_epilogues_of_the_library(self):
        """GPT-2 on the card, with and without epilogues that cuBLASLt computes, where cuBLASLt has no algorithm for them,
        and on a processor."""
        config = json.loads((tools.MODELS / "gpt2-tiny" / "config.json").read_text())
        model = self.folder / "aligned"
        model.mkdir()
        (model / "config.json").write_text(json.dumps(config | ALIGNED))
        flags = ["--batch", "6", "--seq", "13", "--microbatches", "2"]
        sums = {"sum_b"}
        gelu = {"bias", "bias_gelu", "bias_gelu_kept", "gelu_gradient"}
        # Orders of sums differ, and in bf16, whose roundings are 2^-9 of a value, where values are rounded.
        for dtype, used, delta in (("f32", sums | {"bias"}, 1e-5), ("bf16", sums | gelu, 2e-3)):
            with self.subTest(dtype=dtype):
                plan = self.compile(model, self.folder / "x.plan", *flags, "--dtype", dtype)
                self.assertEqual(self.epilogues(plan), used)
                arguments = ["--eval-data", tools.TOKENS, "--eval-every", "2", "--eval-batches", "3"]
                fused, _ = self.train(plan, "cuda:device=0,graphs=0", *arguments)
                graphs, _ = self.train(plan, "cuda:device=0,graphs=1", *arguments)
                self.assertEqual(graphs, fused)
                # Products alone, and functions of the driver for the epilogues.
                refusing = {"BOWLINE_STAND_IN_CUBLASLT_REFUSES": "all", "notes": self.notes_of_epilogues(plan, used)}
                apart, _ = self.train(plan, "cuda:device=0,graphs=0", *arguments, **refusing)
                self.assertEqual(self.train(plan, "cuda:device=0,graphs=1", *arguments, **refusing)[0], apart)
                self.assertEqual(self.train(plan, "cuda:device=0,graphs=0,epilogues=own", *arguments)[0], apart)
                plain = self.compile(model, self.folder / "y.plan", *flags, "--dtype", dtype,
                                     "--disable-step", "library-epilogues", "--disable-step", "library-sums")
                self.assertEqual(self.epilogues(plain), set())
                without, _ = self.train(plain, "cuda:device=0,graphs=0", *arguments)
                tools.succeed("bowline-compile", model, *flags, "--dtype", dtype, *tools.ONE_THREAD,
                              "-o", self.folder / "cpu.plan")
                processor, _ = self.train(self.folder / "cpu.plan", "cpu", *arguments)
                for ours, *others in zip(fused, apart, without, processor, strict=True):
                    for key in ("loss", "eval_loss", "grad_norm"):
                        for other in others:
                            if key in ours:
                                self.assertAlmostEqual(float(ours[key]), float(other[key]), delta=delta)

    def test_text_with_graphs_is_that_without(self):
        weights = self.folder / "weights"
        tools.compile_train("llama-tiny", self.folder / "train.plan")
        tools.succeed("bowline-run", self.folder / "train.plan", "--driver", "cpu", "--data", tools.TOKENS, "--steps", 3,
                      "--save", weights)
        checkpoint = weights / "step-00000003"
        plan = self.compile("llama-tiny", self.folder / "x.plan", "--mode", "generate", "--seq", "29")
        arguments = ["--weights", checkpoint, "--prompt", "a", "--max-new-tokens", 12, "--temperature", 0.7]
        self.assertEqual(self.run_plan(plan, "cuda:device=0,graphs=1", *arguments),
                         self.run_plan(plan, "cuda:device=0,graphs=0", *arguments))

    def test_times_of_commands_are_taken_without_graphs(self):
        plan = self.compile("llama-tiny", self.folder / "x.plan", *tools.TRAIN_SHAPES["llama-tiny"])
        expected = self.train(plan, "cuda:device=0,graphs=0")[0]
        for flags in (["--profile"], ["--trace", self.folder / "trace.json"]):
            self.assertEqual(self.train(plan, "cuda:device=0,graphs=1", *flags, notes=["so runs are not recorded"])[0], expected)
            self.assertEqual(self.train(plan, "cuda:device=0,graphs=0", *flags)[0], expected)

    def test_traces(self):
        """Each launch, copy, communication and wait of each rank and stream has its time, in the order of the stream, and
        the predicted trace has the same commands. Times of different streams agree with what they wait for."""
        measured, predicted = self.folder / "measured.json", self.folder / "predicted.json"
        for name, kinds in (("one rank", {"compute"}), ("two runs", {"compute"}),
                            ("dp", {"compute", "communication", "wait"}), ("pp", {"compute", "communication", "wait"})):
            for processes in ([], ["--nproc"]) if name in ("dp", "pp") else ([],):
                with self.subTest(strategy=name, processes=processes):
                    model, flags = STRATEGIES[name]
                    plan = self.compile(model, self.folder / "x.plan", *tools.TRAIN_SHAPES[model], *flags)
                    ranks = json.loads(tools.succeed("bowline-check", plan, "--json"))["ranks"]
                    files = [measured]
                    if processes:
                        processes = ["--nproc", ranks]
                        files = [self.folder / f"measured.json.rank-{rank}" for rank in range(ranks)]
                    self.train(plan, "cuda:device=0,graphs=0", "--trace", measured, *processes)
                    rows = tools.slices_of(*files)
                    self.assertEqual({rank for rank, _ in rows}, set(range(ranks)))
                    self.check_rows(rows, kinds)
                    tools.succeed("bowline-inspect", plan, "--trace", predicted)
                    self.compare_rows(rows, tools.slices_of(predicted))

    def check_rows(self, rows, kinds):
        found = set()
        for row in rows.values():
            found.update(event["cat"] for event in row)
            for before, after in zip(row, row[1:]):
                self.assertLessEqual(before["ts"] + before["dur"], after["ts"] + CLOCK_US)
            self.assertGreaterEqual(min(event["dur"] for event in row), 0)
            # Streams that wait at random take some time.
            self.assertGreater(max(event["dur"] for event in row), 0)
        self.assertGreaterEqual(found, kinds)

    def compare_rows(self, rows, predicted):
        """The two runs that are kept of each entry are those of the prediction, which is for one rank of each stage."""
        def commands(row, entry):
            runs = {}
            for event in row:
                if event["args"]["entry"] == entry:
                    runs.setdefault(event["args"]["run"], []).append(
                        (event["name"], event["cat"], event["args"]["from"], event["args"]["slot"]))
            return list(runs.values())

        self.assertGreater(len(predicted), 0)
        for key, row in predicted.items():
            entry, = {event["args"]["entry"] for event in row}
            expected, = commands(row, entry)
            self.assertEqual(commands(rows[key], entry), [expected, expected])


if __name__ == "__main__":
    tools.main()
