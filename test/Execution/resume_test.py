#!/usr/bin/env python3
"""A run that stops and goes on is the run that never stopped; what it saves is a model like any other."""

import itertools
import json
import random
import re
import shutil
import subprocess
import time

import tools

MODEL = "llama-tiny"


class Resume(tools.ToolTest):
    def setUp(self):
        super().setUp()
        self.plan = self.folder / "x.plan"
        tools.compile_train(MODEL, self.plan, "--microbatches", "3", "--seed", "5", "--lr-schedule", "cosine",
                            "--warmup-steps", "3", "--decay-steps", "18")

    def train(self, steps, name, *flags, order="shuffle"):
        """Arguments of a run with evaluation that saves into `name`."""
        return [str(word) for word in (
            self.plan, "--data", tools.TOKENS, "--steps", steps, "--order", order, "--eval-data", tools.TOKENS,
            "--eval-every", 4, "--eval-batches", 3, "--save", self.folder / name, "--metrics",
            self.folder / f"{name}.jsonl", "--quiet", *flags)]

    def assert_same_end(self, steps, one, other):
        self.assertEqual(tools.metrics_of(self.folder / f"{one}.jsonl"), tools.metrics_of(self.folder / f"{other}.jsonl"))
        self.assertEqual(len(tools.metrics_of(self.folder / f"{one}.jsonl")), steps + steps // 4)
        for file in ("model.safetensors", "optimizer.safetensors"):
            step = f"step-{steps:08d}"
            self.assertEqual((self.folder / one / step / file).read_bytes(),
                             (self.folder / other / step / file).read_bytes(), file)

    def test_twenty_steps_are_ten_and_ten(self):
        for order in ("sequential", "shuffle"):
            with self.subTest(order=order):
                whole, parts = f"whole-{order}", f"parts-{order}"
                weights = ["--weights", tools.MODELS / MODEL]
                tools.succeed("bowline-run", *self.train(20, whole, *weights, order=order))
                tools.succeed("bowline-run", *self.train(10, parts, *weights, order=order))
                tools.succeed("bowline-run", *self.train(20, parts, "--resume", self.folder / parts, order=order))
                self.assert_same_end(20, whole, parts)

    def test_latest_may_name_an_earlier_step(self):
        plan, saved = self.folder / "x.plan", self.folder / "early"
        tools.succeed("bowline-compile", tools.MODELS / "llama-tiny", "--batch", 2, "--seq", 16, *tools.ONE_THREAD, "-o", plan)
        train = ["bowline-run", plan, "--data", tools.TOKENS, "--save", saved, "--save-every", 1, "--keep", 9]
        tools.succeed(*train, "--steps", 3)
        (saved / "latest").write_text("step-00000002\n")
        done = tools.start(*train, "--steps", 4, "--resume", saved)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.assertIn(f"note: '{saved}/latest' names '{saved}/step-00000002', though '{saved}/step-00000003' is of a later step; "
                      f"to go on from that one, give --resume {saved}/step-00000003\n", done.stderr.decode())
        done = tools.start(*train, "--steps", 5, "--resume", saved)
        self.assertNotIn("of a later step", done.stderr.decode())

    def test_ranks_save_and_resume_together(self):
        plan, other = self.folder / "ranks.plan", self.folder / "zero.plan"
        shape = ["--mode", "train", "--batch", 4, "--seq", 12, "--seed", 5, *tools.ONE_THREAD]
        tools.succeed("bowline-compile", tools.MODELS / MODEL, *shape, "--mesh", "dp=2,tp=2", "-o", plan)
        tools.succeed("bowline-compile", tools.MODELS / MODEL, *shape, "--mesh", "dp=2", "--zero", 2, "-o", other)

        def run(plan, steps, name, *flags):
            tools.succeed("bowline-run", plan, "--data", tools.TOKENS, "--steps", steps, "--order", "shuffle", "--save",
                          self.folder / name, "--metrics", self.folder / f"{name}.jsonl", "--quiet", *flags)

        run(plan, 8, "whole")
        run(plan, 4, "loads", "--weights", self.folder / "whole")
        run(plan, 4, "parts", "--save-every", 1, "--keep", 2)
        self.assertEqual(sorted(path.name for path in (self.folder / "parts").iterdir()),
                         [".lock", "latest", "step-00000003", "step-00000004"])
        run(plan, 8, "parts", "--resume", self.folder / "parts", "--keep", 1)
        self.assertEqual(tools.metrics_of(self.folder / "whole.jsonl"), tools.metrics_of(self.folder / "parts.jsonl"))
        self.assertEqual(len(tools.metrics_of(self.folder / "parts.jsonl")), 8)
        whole, parts = (self.folder / name / "step-00000008" for name in ("whole", "parts"))
        files = sorted(path.name for path in whole.iterdir())
        self.assertEqual(len(files), 2 * 4 + 3)
        for file in files:
            if file != "trainer_state.json":
                # Files of ranks name their run.
                contents = [re.sub(rb'"run":"\w+"', b"", (folder / file).read_bytes()) for folder in (whole, parts)]
                self.assertEqual(*contents, file)
        states = [json.loads((folder / "trainer_state.json").read_text(encoding="utf-8")) for folder in (whole, parts)]
        self.assertNotEqual(states[0].pop("run"), states[1].pop("run"))
        self.assertEqual(*states)

        run(other, 12, "parts", "--resume", self.folder / "parts")
        lines = tools.metrics_of(self.folder / "parts.jsonl")
        run(plan, 12, "whole", "--resume", self.folder / "whole")
        for got, want in zip(lines, tools.metrics_of(self.folder / "whole.jsonl"), strict=True):
            self.assertAlmostEqual(float(got["loss"]), float(want["loss"]), delta=1e-4 * float(want["loss"]))

        # One directory, for the compiler and for one rank.
        exported, one = self.folder / "exported", self.folder / "one.plan"
        tools.succeed("bowline-data", "export-checkpoint", self.folder / "parts", "-o", exported)
        tools.succeed("bowline-compile", exported, *shape, "-o", one)
        losses = {tools.succeed("bowline-run", one, "--eval-data", tools.TOKENS, "--weights", weights)
                  for weights in (exported, self.folder / "parts")}
        self.assertEqual(len(losses), 1)

    def test_killed_while_saving(self):
        steps = 24
        begin = time.monotonic()
        tools.succeed("bowline-run", *self.train(steps, "whole", "--save-every", 1))
        duration = time.monotonic() - begin
        choose = random.Random(tools.TEST_SEED)
        # A run that comes to its end before it is killed tries nothing.
        while self.lives_until_the_end(steps, duration, choose) == 1:
            shutil.rmtree(self.folder / "killed")
            (self.folder / "killed.jsonl").unlink()
            duration /= 2
        self.assert_same_end(steps, "whole", "killed")

    def lives_until_the_end(self, steps, duration, choose):
        """How often the run was started."""
        for life in itertools.count(1):
            resume = ["--resume", self.folder / "killed"] if (self.folder / "killed" / "latest").exists() else []
            if not resume:
                # One that did not live until its first checkpoint is another run.
                (self.folder / "killed.jsonl").unlink(missing_ok=True)
            arguments = self.train(steps, "killed", "--save-every", 1, *resume)
            with subprocess.Popen([tools.tool("bowline-run"), *arguments]) as child:
                try:
                    # Lives grow, so that a machine that has become slow gets to the end too; the last is not cut off.
                    limit = duration * choose.uniform(0.1, 0.4) * (1 + life / 4) if life < 40 else None
                    self.assertEqual(child.wait(timeout=limit), 0)
                    return life
                except subprocess.TimeoutExpired:
                    child.kill()

    def test_a_checkpoint_is_a_model_directory(self):
        tools.succeed("bowline-run", *self.train(6, "saved"))
        checkpoint = self.folder / "saved" / "step-00000006"
        # Compiled anew, without the plan that trained it.
        plan, generate = self.folder / "again.plan", self.folder / "generate.plan"
        tools.succeed("bowline-compile", checkpoint, *tools.TRAIN_SHAPES[MODEL], *tools.ONE_THREAD, "-o", plan)
        tools.succeed("bowline-compile", checkpoint, "--mode", "generate", "--seq", 16, *tools.ONE_THREAD, "-o", generate)
        evaluations = []
        for some_plan in (self.plan, plan):
            # One batch of the first plan is a third of one of the second.
            batches = 6 if some_plan == self.plan else 2
            out = tools.succeed("bowline-run", some_plan, "--eval-data", tools.TOKENS, "--eval-batches", batches,
                                "--weights", checkpoint)
            evaluations.append(out.decode().split()[2:])
        self.assertEqual(evaluations[0][1:], evaluations[1][1:])
        self.assertAlmostEqual(float(evaluations[0][0]), float(evaluations[1][0]), delta=2e-6)
        for weights in (checkpoint, self.folder / "saved"):
            text = tools.succeed("bowline-run", generate, "--weights", weights, "--prompt", "A", "--max-new-tokens", 5)
            self.assertEqual(len(text), 5)
        metrics = self.folder / "again.jsonl"
        tools.succeed("bowline-run", plan, "--data", tools.TOKENS, "--steps", 2, "--weights", checkpoint, "--metrics",
                      metrics, "--quiet")
        self.assertEqual(len(tools.metrics_of(metrics)), 2)

    def test_generation_follows_the_seed(self):
        plan = self.folder / "g.plan"
        for model in tools.TRAIN_SHAPES:
            if model == "llama-tied":
                continue  # 251 ids: like the others, but without some bytes
            with self.subTest(model=model):
                tools.compile_generate(model, plan)

                def text(*flags):
                    return tools.succeed("bowline-run", plan, "--weights", tools.MODELS / model, "--prompt", "The ",
                                         "--max-new-tokens", 40, *flags)

                one = text("--seed", 3)
                self.assertEqual(len(one), 40)
                self.assertEqual(one, text("--seed", 3))
                self.assertNotEqual(one, text("--seed", 4))
                self.assertEqual(text("--temperature", 0, "--seed", 3), text("--temperature", 0, "--seed", 4))


def layer(ids, result, cache):
    """A model of two matrices with a state per request that each run doubles, as text between `ids` and `result`."""
    return f"""
graph.param @embed : tensor<257x8xf32> init(#graph.normal<0.5>) key("embed") role(vocabulary) layer(0)
graph.param @head : tensor<257x8xf32> init(#graph.normal<0.5>) key("head") role(vocabulary) layer(1)
graph.state @cache per_request : {cache} init(#graph.normal<50.0>)
graph.func {ids}
  %embed = graph.read @embed : tensor<257x8xf32>
  %head = graph.read @head : tensor<257x8xf32>
  %cache = graph.read @cache : {cache}
  %grown = arith.addf %cache, %cache : {cache}
  graph.write @cache, %grown : {cache}
  {result}
}}
"""


TRAINS = layer("""loss @score(%tokens: tensor<4x6xi32> {graph.limit = 257 : i64, graph.name = "tokens"},
                       %labels: tensor<4x6xi32> {graph.limit = 257 : i64, graph.name = "labels"})
    -> (tensor<f32> {graph.name = "loss_sum"}, tensor<f32> {graph.name = "token_count"}) {""", """
  %x = graph.gather %embed[%tokens] : (tensor<257x8xf32>, tensor<4x6xi32>) -> tensor<4x6x8xf32>
  %y = graph.dot_general %x, %head contract [2] x [1] :
    (tensor<4x6x8xf32>, tensor<257x8xf32>) -> tensor<4x6x257xf32>
  %losses, %logsumexp = graph.softmax_cross_entropy %y, %labels :
    (tensor<4x6x257xf32>, tensor<4x6xi32>) -> (tensor<4x6xf32>, tensor<4x6xf32>)
  %sum = graph.reduce sum %losses dims [0, 1] : (tensor<4x6xf32>) -> tensor<f32>
  %count = arith.constant dense<24.0> : tensor<f32>
  graph.return %sum, %count : tensor<f32>, tensor<f32>""", "tensor<8xf32>")

# The program adds the cache to the logits; the cache's values outweigh the effect that any text has on them.
GENERATES = layer("""generate @next(%tokens: tensor<1x6xi32> {graph.limit = 257 : i64, graph.name = "tokens"},
                     %position: tensor<1xi32> {graph.limit = 6 : i64, graph.name = "position"})
    -> (tensor<1x257xf32> {graph.name = "logits"}) {""", """
  %table = graph.reshape %tokens : (tensor<1x6xi32>) -> tensor<6x1xi32>
  %token = graph.gather %table[%position] : (tensor<6x1xi32>, tensor<1xi32>) -> tensor<1x1xi32>
  %id = graph.reshape %token : (tensor<1x1xi32>) -> tensor<1xi32>
  %x = graph.gather %embed[%id] : (tensor<257x8xf32>, tensor<1xi32>) -> tensor<1x8xf32>
  %y = graph.dot_general %x, %head contract [1] x [1] : (tensor<1x8xf32>, tensor<257x8xf32>) -> tensor<1x257xf32>
  %logits = arith.addf %y, %cache : tensor<1x257xf32>
  graph.return %logits : tensor<1x257xf32>""", "tensor<1x257xf32>")


class StatesPerRequest(tools.ToolTest):
    """A cache is in no checkpoint, of whatever ranks, and the run that goes on is the one that never stopped."""

    def plan(self, text, name, *flags):
        program = self.folder / f"{name}.mlir"
        program.write_text(text, encoding="utf-8")
        tools.succeed("bowline-compile", program, "--seed", 5, *tools.ONE_THREAD, *flags, "-o",
                      self.folder / f"{name}.plan")
        return self.folder / f"{name}.plan"

    def test_no_checkpoint_has_it(self):
        for name, flags in (("one", []), ("stages", ["--mesh", "pp=2"]), ("zero", ["--mesh", "dp=2", "--zero", 3])):
            with self.subTest(name=name):
                plan = self.plan(TRAINS, name, "--mode", "train", *flags)
                self.assertIn("sound", tools.succeed("bowline-check", plan).decode())

                def run(steps, folder, *more, plan=plan):
                    tools.succeed("bowline-run", plan, "--data", tools.TOKENS, "--steps", steps, "--save",
                                  self.folder / folder, "--metrics", self.folder / f"{folder}.jsonl", "--quiet", *more)
                    return tools.metrics_of(self.folder / f"{folder}.jsonl")

                whole, parts = f"{name}-whole", f"{name}-parts"
                run(6, whole)
                run(3, parts)
                saved = [path for path in (self.folder / parts).rglob("*") if path.is_file()]
                self.assertTrue(any(b"embed" in path.read_bytes() for path in saved))
                self.assertEqual([path for path in saved if b"cache" in path.read_bytes()], [])
                self.assertEqual(run(6, parts, "--resume", self.folder / parts), tools.metrics_of(
                    self.folder / f"{whole}.jsonl"))

    def test_a_text_begins_with_its_initial_value(self):
        trains = self.plan(TRAINS, "train", "--mode", "train")
        tools.succeed("bowline-run", trains, "--data", tools.TOKENS, "--steps", 1, "--save", self.folder / "saved",
                      "--quiet")
        plan = self.plan(GENERATES, "generate", "--mode", "generate")
        texts = [tools.succeed("bowline-run", plan, "--weights", self.folder / "saved", "--prompt", prompt,
                               "--max-new-tokens", 8, "--temperature", 0) for prompt in ("a", "another")]
        self.assertEqual(texts[0], texts[1])
        self.assertEqual(texts[0], texts[0][:1] * 8)


class FormerCheckpoints(tools.ToolTest):
    """Checkpoints of builds that wrote plans of older formats go on as they did there."""

    PLAN = {"one": [], "ranks": ["--mesh", "pp=2,dp=2", "--zero", 1]}

    @staticmethod
    def saved(version):
        return tools.TEST_DIR / "Execution" / f"checkpoints-of-format-{version}"

    def continue_from(self, version, saved, plan, flags, machine=None):
        name = f"{version}-{saved}-{plan}"
        (self.folder / f"{name}.jsonl").unlink(missing_ok=True)  # which is of another run: these checkpoints name none
        tools.succeed("bowline-compile", self.saved(version), "--mode", "train", "--batch", 4, "--seq", 12, "--seed", 7,
                      "--microbatches", 2, *flags, *tools.ONE_THREAD, *self.PLAN[plan],
                      "-o", self.folder / f"{name}.plan", env=machine)
        tools.succeed("bowline-run", self.folder / f"{name}.plan", "--data", tools.TOKENS, "--order", "shuffle",
                      "--steps", 12, "--resume", self.saved(version) / saved,
                      "--metrics", self.folder / f"{name}.jsonl", "--quiet", env=machine)
        return tools.metrics_of(self.folder / f"{name}.jsonl")

    def expect_as_recorded(self, version, saved, plan, flags, tolerance):
        """As this machine is, within the tolerance; taken for one of a recorded level, and with the ranks of the run that
        saved, to the bit."""
        levels = json.loads((self.saved(version) / "continued.json").read_text(encoding="utf-8"),
                            parse_float=str)["levels"]
        runs = [(None, self.continue_from(version, saved, plan, flags))]
        if saved == plan:
            runs += [(level, self.continue_from(version, saved, plan, flags, tools.as_level(level)))
                     for level in levels if tools.machine_has(level)]
        for level, lines in runs:
            self.assertEqual([line["step"] for line in lines], list(range(7, 13)))
            for key, name in (("loss", "losses"), ("grad_norm", "grad_norms")):
                got = [line[key] for line in lines]
                if level:
                    self.assertEqual(got, levels[level][name][plan], level)
                for recorded in levels.values():
                    for one, other in zip(got, recorded[name][plan], strict=True):
                        self.assertAlmostEqual(float(one), float(other), delta=tolerance * float(other))

    def test_format_1(self):
        for saved, plan in (("one", "one"), ("ranks", "ranks"), ("one", "ranks"), ("ranks", "one")):
            with self.subTest(saved=saved, plan=plan):
                self.expect_as_recorded(1, saved, plan, [], 1e-5)

    def test_format_2(self):
        # Six steps in bf16, whose roundings are those of 8 bits, change a norm by less than one of them.
        for saved in ("one", "ranks"):
            with self.subTest(saved=saved):
                self.expect_as_recorded(2, saved, saved, ["--dtype", "bf16"], 2.0**-8)


if __name__ == "__main__":
    tools.main()
