#!/usr/bin/env python3
"""Recomputation changes memory and time, and not one bit of what is learned."""

import json
import re
import shutil

import tools

# Layers enough that what they keep is most of the memory.
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
        done = tools.start("bowline-compile", self.deep(model), *SHAPE, "--threads", threads, *flags, "-o", plan)
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

    def test_stages_of_pipelines(self):
        for model in CONFIGS:
            with self.subTest(model=model):
                arenas, learned = {}, {}
                for mode in ("none", "selective", "full"):
                    plan, saved, metrics = (self.folder / name for name in ("x.plan", f"saved-{mode}", "metrics.jsonl"))
                    text = tools.start("bowline-compile", self.deep(model), *SHAPE, "--threads", 1, "--mesh", "pp=2",
                                       "--schedule", "1f1b", "--microbatches", 3, "--recompute", mode, "-o",
                                       plan).stderr.decode()
                    stages = re.findall(r"recompute .* of stage (\d), for (\d) microbatches in flight: (\d+) operations",
                                        text)
                    if mode == "full":
                        self.assertEqual([stage[:2] for stage in stages], [("0", "2"), ("1", "1")], text)
                        self.assertTrue(all(int(stage[2]) > 0 for stage in stages), text)
                    lines = tools.succeed("bowline-check", plan).decode().splitlines()
                    self.assertEqual(lines[-1], "sound")
                    arenas[mode] = [int(line.split()[1]) for line in lines if line.startswith("arena")]
                    shutil.rmtree(saved, ignore_errors=True)  # of another model
                    metrics.unlink(missing_ok=True)
                    tools.succeed("bowline-run", plan, "--data", tools.TOKENS, "--steps", STEPS, "--save", saved,
                                  "--metrics", metrics, "--quiet")
                    end = saved / f"step-{STEPS:08d}"
                    # Files name their run, which is another one.
                    learned[mode] = tools.metrics_of(metrics), {
                        path.name: re.sub(rb'"run":"[0-9a-f]+"', b"", path.read_bytes(), count=1)
                        for path in end.rglob("*.safetensors")}
                self.assertEqual(len(learned["none"][1]), 4)
                for mode in ("selective", "full"):
                    self.assertEqual(learned[mode], learned["none"], mode)
                for rank in range(2):
                    self.assertLess(arenas["full"][rank], arenas["none"][rank])
                    self.assertLessEqual(arenas["selective"][rank], arenas["none"][rank])

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
        _, least, _ = self.compile("llama-tiny", "--recompute", "full")
        text = self.compile("llama-tiny", "--recompute", "auto", "--memory-limit", least // 2, exit_code=1)
        self.assertRegex(text, r"the plan needs [0-9.]+ [KM]iB, more than --memory-limit .*no recomputation gets lower")
        text = self.compile("llama-tiny", "--memory-limit", least // 2, exit_code=1)
        self.assertIn("use --recompute auto", text)

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
        self.assertIn("say how much there is with --memory-limit, or use none, selective or full", text)

    def test_what_divided_backward_passes_cannot(self):
        flags = ["--mesh", "pp=2", "--microbatches", 3, "--recompute"]
        text = self.compile("llama-tiny", *flags, "full", "--schedule", "zb_h1", exit_code=1)
        self.assertIn("--recompute full: ", text)
        self.assertIn('use "none", or another schedule such as "1f1b"', text)
        text = self.compile("llama-tiny", *flags, "auto", "--memory-limit", "1GiB", exit_code=1)
        self.assertIn("cannot choose for the stages of a pipeline", text)


if __name__ == "__main__":
    tools.main()
