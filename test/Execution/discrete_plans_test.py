#!/usr/bin/env python3
"""Plans for the driver `discrete`: the target's alignment, launches by grid and kernels, and the results of processors."""

import json

import tools

STRATEGIES = {
    "llama-tiny": ["--dtype", "bf16"],
    "gpt2-tiny": ["--microbatches", "3"],
    "qwen3-tiny": ["--mesh", "pp=2", "--microbatches", "3"],
    "llama-tied": ["--mesh", "dp=3", "--zero", "3", "--dtype", "bf16"],
}


class DiscretePlans(tools.ToolTest):
    def compile(self, target, model, *flags):
        plan = self.folder / f"{target}.plan"
        tools.compile_train(model, plan, "--target", target, *flags)
        self.assertEqual(tools.succeed("bowline-check", plan).decode().splitlines()[-1], "sound")
        return plan

    def run_plan(self, plan, driver):
        metrics = self.folder / "metrics.jsonl"
        metrics.unlink(missing_ok=True)
        tools.succeed("bowline-run", plan, "--driver", driver, "--data", tools.TOKENS, "--steps", 3, "--metrics", metrics)
        lines = tools.metrics_of(metrics)
        self.assertEqual(len(lines), 3)
        return lines

    def kernels(self, plan):
        return json.loads(tools.succeed("bowline-inspect", plan, "--kernels", "--json"))["kernels"]

    def offsets(self, plan):
        return [buffer["offset"] for buffer in json.loads(tools.succeed("bowline-inspect", plan, "--json"))["buffers"]]

    def test_results_are_those_of_processors(self):
        for model, flags in STRATEGIES.items():
            with self.subTest(model=model):
                expected = self.run_plan(self.compile("cpu", model, *flags), "cpu")
                plan = self.compile("discrete", model, *flags)
                for seed in (1, 2, 3):
                    self.assertEqual(self.run_plan(plan, f"discrete:seed={seed}"), expected)

    def test_buffers_begin_at_multiples_of_256(self):
        for flags in ([], ["--microbatches", "3", "--dtype", "bf16"]):
            own = self.offsets(self.compile("discrete", "llama-tiny", *flags))
            self.assertGreater(len(own), 20)
            self.assertEqual([offset for offset in own if offset % 256], [])
            self.assertTrue(any(offset % 256 for offset in self.offsets(self.compile("cpu", "llama-tiny", *flags))))

    def test_generated_code_is_launched_by_grid(self):
        own = [kernel for kernel in self.kernels(self.compile("discrete", "llama-tiny")) if kernel["origin"] == "Generated"]
        of_cpu = {kernel["name"]: kernel for kernel in self.kernels(self.compile("cpu", "llama-tiny"))}
        self.assertGreater(len(own), 5)
        for kernel in own:
            self.assertEqual(kernel["grid"]["threads"], [1])
            self.assertEqual(kernel["grid"]["blocks"], [min(64, of_cpu[kernel["name"]]["extent"])])

    def test_plans_survive_as_text(self):
        plan = self.compile("discrete", "llama-tiny")
        text, again = self.folder / "x.mlir", self.folder / "again.plan"
        tools.succeed("bowline-translate", "--plan-to-mlir", plan, "-o", text)
        self.assertRegex(text.read_text(), r"grid \[\d+, 1, \d+\]")
        tools.succeed("bowline-translate", "--mlir-to-plan", text, "-o", again)
        self.assertEqual(again.read_bytes(), plan.read_bytes())

    def test_kernels_of_its_own_have_their_own_workspace(self):
        """That of the CPU chains tokens in its workspace; the device's own sums up in the table."""
        def arguments(target):
            scatter, = [kernel for kernel in self.kernels(self.compile(target, "llama-tiny"))
                        if kernel["name"] == "scatter_add_rows"]
            return len(scatter["arguments"])
        self.assertEqual(arguments("cpu"), 4)
        self.assertEqual(arguments("discrete"), 3)

    def test_the_cpu_driver_refuses_them(self):
        plan = self.compile("discrete", "llama-tiny")
        done = tools.start("bowline-run", plan, "--driver", "cpu", "--data", tools.TOKENS, "--steps", 1)
        self.assertEqual(done.returncode, 1)
        self.assertIn("the plan was compiled for the device 'discrete', which the driver 'cpu' is not", done.stderr.decode())

    def test_steps_keep_what_is_computed(self):
        done = tools.start("bowline-compile", tools.MODELS / "llama-tiny", *tools.TRAIN_SHAPES["llama-tiny"], "--target",
                           "discrete", "--dtype", "bf16", "--verify-each=equiv", "-o", self.folder / "x.plan")
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.assertIn("equivalence: ", done.stderr.decode())


if __name__ == "__main__":
    tools.main()
