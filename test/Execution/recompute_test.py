#!/usr/bin/env python3
"""Recomputation changes memory and time, and not one bit of what is learned."""

import json
import re
import shutil

import tools

# Enough layers that the values they keep are most of the memory.
LAYERS = 7
CONFIGS = {"llama-tiny": "num_hidden_layers", "gpt2-tiny": "n_layer"}
SHAPE = ["--batch", "6", "--seq", "27"]
STEPS = 6


class Recompute(tools.ToolTest):
    def deep(self, model):
        """The model of that name with more layers and no weights."""
        folder = self.folder / f"deep-{model}"
        if not folder.exists():
            folder.mkdir()
            config = json.loads((tools.MODELS / model / "config.json").read_text())
            config[CONFIGS[model]] = LAYERS
            (folder / "config.json").write_text(json.dumps(config))
        return folder

    def compile(self, model, *flags, threads=1, exit_code=0):
        """(path of the plan, its arena in bytes, added arithmetic in percent); or the message where it fails."""
        plan = self.folder / "x.plan"
        shape = [word for at in (0, 2) if SHAPE[at] not in flags for word in SHAPE[at:at + 2]]
        done = tools.start("bowline-compile", self.deep(model), *shape, "--threads", threads, *flags, "-o", plan)
        text = done.stderr.decode()
        self.assertEqual(done.returncode, exit_code, text)
        if exit_code != 0:
            return text
        self.assertEqual(tools.succeed("bowline-check", plan).decode().splitlines()[-1], "sound")
        header = json.loads(tools.succeed("bowline-inspect", plan, "--json"))["header"]
        added = re.findall(r"recompute .* FLOP more \(([0-9.]+) %\)", text)
        self.assertLessEqual(len(added), 1, text)
        return plan, header["arena_bytes"], float(added[0]) if added else 0.0

    def train(self, plan):
        """Losses, gradient norms, and the bytes of parameters and optimizer after some steps."""
        saved, metrics = self.folder / "saved", self.folder / "metrics.jsonl"
        shutil.rmtree(saved, ignore_errors=True)  # of another run
        metrics.unlink(missing_ok=True)
        tools.succeed("bowline-run", plan, "--data", tools.TOKENS, "--steps", STEPS, "--order", "shuffle", "--save",
                      saved, "--metrics", metrics, "--quiet")
        lines = tools.metrics_of(metrics)
        self.assertEqual(len(lines), STEPS)
        end = saved / f"step-{STEPS:08d}"
        return lines, [(end / name).read_bytes() for name in ("model.safetensors", "optimizer.safetensors")]

    def test_every_mode_learns_the_same(self):
        kinds = [[], ["--microbatches", "3"], ["--dtype", "bf16"]]
        for number, model in enumerate(CONFIGS):
            for flags in kinds if tools.NIGHTLY or number == 0 else kinds[1:2]:
                with self.subTest(model=model, flags=flags):
                    plan, most, added = self.compile(model, *flags)
                    self.assertEqual(added, 0)
                    expected = self.train(plan)
                    arenas = {}
                    for mode in ("selective", "full"):
                        plan, arenas[mode], added = self.compile(model, *flags, "--recompute", mode)
                        self.assertGreater(added, 0, mode)
                        self.assertLess(arenas[mode], most, mode)
                        self.assertEqual(self.train(plan), expected, mode)
                    self.assertLess(arenas["full"], arenas["selective"])
                    limit = (arenas["full"] + most) // 2
                    plan, arena, added = self.compile(model, *flags, "--recompute", "auto", "--memory-limit", limit)
                    self.assertLessEqual(arena, limit)
                    self.assertGreater(added, 0)
                    self.assertEqual(self.train(plan), expected, "auto")

    def test_ports_that_runs_in_flight_have_twice_are_within_the_limit(self):
        flags = ["--runs-in-flight", 2, "--no-codegen"]
        for model in CONFIGS:
            _, one, _ = self.compile(model, "--no-codegen")
            _, two, _ = self.compile(model, *flags)
            self.assertGreater(two, one, "second ports lie behind the arena that is packed")
            for limit in (two, two - 1, (one + two) // 2, one, one - 1):
                with self.subTest(model=model, limit=limit):
                    _, arena, added = self.compile(model, *flags, "--recompute", "auto", "--memory-limit", limit)
                    self.assertLessEqual(arena, limit)
                    self.assertEqual(added > 0, limit < two)

    def learn(self, model, name, *flags, seq=27):
        """(text of the compiler, arena by role, metrics and saved states after some steps) of a plan of several ranks."""
        plan, saved, metrics = (self.folder / name for name in ("x.plan", f"saved-{name}", "metrics.jsonl"))
        done = tools.start("bowline-compile", self.deep(model), "--batch", 6, "--seq", seq, "--threads", 1, *flags, "-o",
                           plan)
        text = done.stderr.decode()
        self.assertEqual(done.returncode, 0, text)
        lines = tools.succeed("bowline-check", plan).decode().splitlines()
        self.assertEqual(lines[-1], "sound")
        arenas = [int(line.split()[1]) for line in lines if line.startswith("arena")]
        shutil.rmtree(saved, ignore_errors=True)  # of another model
        metrics.unlink(missing_ok=True)
        tools.succeed("bowline-run", plan, "--data", tools.TOKENS, "--steps", STEPS, "--save", saved, "--metrics",
                      metrics, "--quiet")
        # Files name their run, which is another one.
        files = {path.name: re.sub(rb'"run":"[0-9a-f]+"', b"", path.read_bytes(), count=1)
                 for path in (saved / f"step-{STEPS:08d}").rglob("*.safetensors")}
        self.assertEqual(len(files), 4)
        return text, arenas, (tools.metrics_of(metrics), files)

    def check_modes(self, model, *flags, **shape):
        """Every mode learns the same and needs less than the one before; returns the texts by mode."""
        texts, arenas, learned = {}, {}, {}
        for mode in ("none", "selective", "full"):
            texts[mode], arenas[mode], learned[mode] = self.learn(model, mode, *flags, "--recompute", mode,
                                                                       **shape)
        for mode in ("selective", "full"):
            self.assertEqual(learned[mode], learned["none"], mode)
        for none, selective, full in zip(*arenas.values()):
            self.assertLess(full, none)
            self.assertLessEqual(selective, none)
        return texts

    def test_stages_of_pipelines(self):
        # Microbatches between the forward pass and the end of the backward pass, by stage.
        for schedule, in_flight in (("1f1b", ["2", "1"]), ("zb_h1", ["2", "2"])):
            for model in CONFIGS if tools.NIGHTLY or schedule == "1f1b" else ["llama-tiny"]:
                with self.subTest(model=model, schedule=schedule):
                    texts = self.check_modes(model, "--mesh", "pp=2", "--schedule", schedule, "--microbatches", 3)
                    stages = re.findall(
                        r"recompute .* of stage (\d), for (\d) microbatches in flight: [1-9]\d* operations",
                        texts["full"])
                    self.assertEqual(stages, list(zip("01", in_flight)), texts["full"])

    def test_ranks_that_divide_the_sequence_gather_again(self):
        texts = self.check_modes("llama-tiny", "--mesh", "tp=2", "--sequence-parallel", seq=28)
        self.learn("llama-tiny", "none", "--mesh", "tp=2", "--sequence-parallel", seq=28)
        why = tools.succeed("bowline-inspect", "--why", self.folder / "x.plan").decode()
        self.assertIn("all_gather on 'tp', recomputed of model.layers.*.input_layernorm", why)
        self.assertRegex(texts["full"], r"operations run again \([1-9]\d* of them collectives\)")

    def test_auto_meets_every_limit_with_no_more_than_it_needs(self):
        for model in CONFIGS:
            with self.subTest(model=model):
                _, most, _ = self.compile(model)
                _, least, full_added = self.compile(model, "--recompute", "full")
                before = None
                for part in range(0, 9, 1 if tools.NIGHTLY else 4):
                    limit = least + (most - least) * part // 8
                    _, arena, added = self.compile(model, "--recompute", "auto", "--memory-limit", limit)
                    self.assertLessEqual(arena, limit)
                    self.assertLessEqual(added, full_added)
                    if before is not None:
                        self.assertLessEqual(added, before, f"limit {limit}")
                    before = added
                self.assertEqual(before, 0, "with room for everything nothing is recomputed")

    def test_a_limit_that_nothing_meets(self):
        # No sizes of a step make parameters and states fewer.
        for flags, ranks in ((("--mesh", "dp=2"), " times as many ranks"), ((), " ranks")):
            text = self.compile("llama-tiny", *flags, "--memory-limit", "10KiB", exit_code=1)
            found = re.search(r"; parameters and states of the optimizer alone take ([0-9.]+) ([KM])iB(?: on a rank)?, whatever the sizes of a "
                              r"step, and ([0-9.]+) ([KM])iB with gradients and activations of the smallest step: at least "
                              rf"([0-9]+){ranks} are needed to hold them, along an axis tp or pp of --mesh, or fsdp with --zero 3\n", text)
            self.assertIsNotNone(found, text)
            unit = {"K": 1, "M": 1024}
            kib, smallest, least_ranks = float(found[1]) * unit[found[2]], float(found[3]) * unit[found[4]], int(found[5])
            rounding = 0.05 * unit[found[4]]
            self.assertLess(kib, smallest)
            self.assertLess(10 * (least_ranks - 1), smallest + rounding)
            self.assertLessEqual(smallest, 10 * least_ranks + rounding)
            self.assertNotIn("--batch", text)
        # Recomputation may make the rest of the smallest step less, so that only the model counts.
        text = self.compile("llama-tiny", "--batch", 1, "--memory-limit", "10KiB", exit_code=1)
        self.assertRegex(text, rf"alone take {found[1]} {found[2]}iB, whatever the sizes of a step: at least [0-9]+ ranks are needed")
        self.assertLess(10 * (int(re.search("at least ([0-9]+) ", text)[1]) - 1), kib + 0.05 * unit[found[2]])
    def test_advice_about_a_limit_is_true(self):
        _, most, _ = self.compile("llama-tiny")
        _, full, _ = self.compile("llama-tiny", "--recompute", "full")
        _, divided, _ = self.compile("llama-tiny", "--recompute", "full", "--microbatches", 6)
        _, smallest, _ = self.compile("llama-tiny", "--recompute", "full", "--batch", 1)
        self.assertLess(divided, full)
        kinds = set()
        for limit in (most - 1, full, full - 1, divided, divided - 1, smallest, smallest - 4096):
            with self.subTest(limit=limit):
                text = self.compile("llama-tiny", "--memory-limit", limit, exit_code=1)
                self.assertIn(f"({most} bytes), more than --memory-limit {limit} ({limit} bytes)" if limit == most - 1
                              else f"more than --memory-limit {limit};", text)
                advice = re.search(r"; use (.*), with which it needs at most ", text)
                if limit >= smallest:
                    self.assertNotIn("--seq", text)
                self.assertIsNotNone(advice, text)
                flags = advice[1].replace(",", "").replace(" and ", " ").split()
                kinds.update(flag for flag in flags if flag.startswith("--"))
                _, arena, _ = self.compile("llama-tiny", "--memory-limit", limit, *flags)
                self.assertLessEqual(arena, limit, text)
        self.assertEqual({"--recompute", "--microbatches", "--batch", "--seq"}, kinds)
        # Where no sequence is short enough, ranks divide the model.
        text = self.compile("llama-tiny", "--target-cpu", "x86-64-v3", "--memory-limit", "1000KiB", exit_code=1)
        advice = re.search(": divide them by (--mesh .*), with which a rank needs at most ", text)
        self.assertIsNotNone(advice, text)
        self.assertNotIn("--seq", text)
        flags = advice[1].replace(",", "").replace(" and ", " ").split()
        _, arena, _ = self.compile("llama-tiny", "--target-cpu", "x86-64-v3", "--memory-limit", "1000KiB", *flags)
        self.assertLessEqual(arena, 1000 << 10)
        # So do more ranks than there are.
        given = ("--target-cpu", "x86-64-v3", "--memory-limit", "900KiB")
        text = self.compile("llama-tiny", *given, "--mesh", "dp=2", exit_code=1)
        advice = re.search(": divide them by (--mesh .*), with which a rank needs at most ", text)
        self.assertIsNotNone(advice, text)
        _, arena, _ = self.compile("llama-tiny", *given, *re.sub(", | and ", " ", advice[1]).split())
        self.assertLessEqual(arena, 900 << 10)
        # Stages that take microbatches in a row keep whole parameters, unless they gather for each.
        rows = ("--target-cpu", "x86-64-v3", "--mesh", "pp=2,dp=2", "--microbatches", 3, "--zero", 3)
        _, each, _ = self.compile("llama-tiny", *rows, "--schedule", "gpipe", "--zero-each")
        limit = each + (96 << 10)  # without code advice is compiled, which may need more
        text = self.compile("llama-tiny", *rows, "--schedule", "gpipe", "--memory-limit", limit, exit_code=1)
        self.assertIn("; use --zero-each, with which it needs at most ", text)
        # Sizes of a step that go together, and a schedule of them, are tried too.
        chunks = ("--mesh", "pp=2", "--microbatches", 3, "--schedule", "interleaved:2")
        text = self.compile("llama-tiny", *chunks, "--memory-limit", "1GiB", exit_code=1)
        schedule = re.search("--schedule [a-z0-9_:]+", text)
        self.assertIsNotNone(schedule, text)
        text = self.compile("llama-tiny", *chunks, "--memory-limit", "100KiB", exit_code=1)
        self.assertRegex(text, rf"; with --microbatches .*or {schedule[0]} the plan needs more than --memory-limit")
        # A number without a unit.
        self.assertIn("without a unit is in bytes: give one, as in --memory-limit 80GiB",
                      self.compile("llama-tiny", "--memory-limit", "80", exit_code=1))
        # One sequence cannot become fewer.
        text = self.compile("llama-tiny", "--batch", 1, "--memory-limit", smallest - 1, exit_code=1)
        self.assertNotIn("--batch", text)
        self.assertRegex(text, "; with --recompute (auto|full) it still needs|; no recomputation and no smaller batch gets lower")

    def test_where_nothing_runs_again_it_is_said_why(self):
        model = [tools.MODELS / "llama-tiny", "--batch", 1, "--seq", 8, "--no-codegen", "-o", self.folder / "x.plan"]
        for flags, why in ((["full"], "none of the values that are alive at the peak could be computed again, so that it "
                                      "would take time and free nothing; about 0.2 MiB of values at the peak"),
                           (["auto", "--memory-limit", "1GiB"], "the plan is within the memory limit without it")):
            done = tools.start("bowline-compile", *model, "--recompute", *flags)
            self.assertEqual(done.returncode, 0)
            self.assertEqual(done.stderr.decode(), f"bowline-compile: note: --recompute {flags[0]}: recompute {flags[0]}: "
                                                   f"nothing runs again, as {why}\n")

    def test_auto_needs_a_limit(self):
        text = self.compile("gpt2-tiny", "--recompute", "auto", exit_code=1)
        self.assertIn("--recompute auto: ", text)
        self.assertIn("which needs --memory-limit; give it, or use none, selective or full", text)

    def test_auto_in_pipelines(self):
        for schedule in ("1f1b", "zb_h1", "breadth_first:2"):
            flags = ["--mesh", "pp=2", "--microbatches", 3, "--schedule", schedule, "--recompute"]
            with self.subTest(schedule=schedule):
                arena = {}
                for mode in ("none", "full"):
                    _, arenas, _ = self.learn("llama-tiny", mode, *flags, mode)
                    arena[mode] = max(arenas)
                limit = (arena["none"] + arena["full"]) // 2
                text, arenas, learned = self.learn("llama-tiny", "auto", *flags, "auto", "--memory-limit", limit)
                self.assertLessEqual(max(arenas), limit)
                self.assertRegex(text, r"recompute auto of stage \d")
                self.assertEqual(learned, self.learn("llama-tiny", "none", *flags, "none")[2])


if __name__ == "__main__":
    tools.main()
