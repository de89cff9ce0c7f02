#!/usr/bin/env python3
"""BOWLINE_TARGET_CPU: a machine is taken for one of a lower level, by whoever generates code, runs it or loads plans."""

import json

import tools

SHAPE = ["--batch", "4", "--seq", "16", *tools.ONE_THREAD]


class TargetLevels(tools.ToolTest):
    def setUp(self):
        super().setUp()
        self.levels = [level for level in tools.LEVELS if tools.machine_has(level)]
        self.assertTrue(self.levels)

    def without_amx(self):
        """Kernels do without it in plans of other levels, and generated code does not use it."""
        return [level for level in self.levels if not level.endswith("+amx")]

    def compile(self, name, *flags, level=""):
        plan = self.folder / f"{name}.plan"
        tools.succeed("bowline-compile", tools.MODELS / "llama-tiny", *SHAPE, *flags, "-o", plan, env=tools.as_level(level))
        return plan

    def losses(self, plan, level, *flags):
        metrics = self.folder / "metrics.jsonl"
        metrics.unlink(missing_ok=True)
        tools.succeed("bowline-run", plan, "--data", tools.TOKENS, "--steps", 4, "--metrics", metrics, "--quiet", *flags,
                      env=tools.as_level(level))
        return tools.metrics_of(metrics)

    def refuse(self, name, *arguments, level):
        """The message of a tool that ends with the exit code for mistakes of the user."""
        done = tools.start(name, *arguments, env=tools.as_level(level))
        self.assertEqual((done.returncode, done.stdout), (1, b""), done.stderr)
        return done.stderr.decode()

    def test_native_is_the_level(self):
        plans = set()
        for level in self.levels:
            native, named = self.compile("native", level=level), self.compile("named", "--target-cpu", level)
            target = json.loads(tools.succeed("bowline-inspect", native, "--json"))["header"]["target"]
            self.assertEqual(target.split()[-1], level)
            self.assertEqual(native.read_bytes(), named.read_bytes())
            plans.add(native.read_bytes())
        self.assertEqual(len(plans), len(self.levels))

    def test_unset_is_the_highest(self):
        self.assertEqual(self.compile("unset").read_bytes(), self.compile("highest", level=self.levels[-1]).read_bytes())

    def test_plans_above_the_level_are_refused(self):
        targets = self.without_amx()
        plans = {target: self.compile(target, "--dtype", "bf16", "--target-cpu", target) for target in targets}
        for index, level in enumerate(targets):
            for target in targets[:index + 1]:
                self.assertEqual(len(self.losses(plans[target], level)), 4)
            for target in targets[index + 1:]:
                said = self.refuse("bowline-run", plans[target], "--data", tools.TOKENS, "--steps", 1, level=level)
                self.assertIn(f"compiled for CPU '{target}', but this machine is '{level}' by the environment's "
                              "BOWLINE_TARGET_CPU; compile the model again for this machine, or unset BOWLINE_TARGET_CPU", said)

    def test_kernels_are_those_of_the_level(self):
        """One plan, whose generated code is the same everywhere. From v3 on, kernels multiply and add with one rounding; with
        AVX512-BF16 they add two products of bf16 at a time. Those of v3 and v4 add in the same order."""
        plan = self.compile("low", "--dtype", "bf16", "--target-cpu", self.levels[0])
        levels = self.without_amx()
        results = {level: self.losses(plan, level) for level in levels}
        for level in levels:
            self.assertEqual(results[level], self.losses(plan, level))
        for lower, higher in (("x86-64-v2", "x86-64-v3"), ("x86-64-v4", "x86-64-v4+avx512bf16")):
            if higher in levels:
                self.assertNotEqual(results[lower], results[higher])
        for level in levels[1:]:
            for one, other in zip(results[levels[0]], results[level], strict=True):
                # Only roundings to bf16 differ.
                self.assertAlmostEqual(float(one["loss"]), float(other["loss"]), delta=2.0**-8 * float(one["loss"]))

    def test_f32_by_six_products_of_bf16(self):
        """A choice of the plan's, which changes results on AMX alone, by less than the rounding of f32."""
        for level in self.levels:
            plain, split = (self.compile(name, "--f32-products", name, level=level) for name in ("f32", "bf16x6"))
            report = tools.succeed("bowline-compile", tools.MODELS / "llama-tiny", *SHAPE, "--f32-products", "bf16x6",
                                   "--report", "-o", split, env=tools.as_level(level))
            self.assertIn(b"kernels of products of f32 may use six of bf16", report)
            results, weights = [], []
            for plan in (plain, split):
                saved = self.folder / f"{level}-{plan.stem}"
                results.append(self.losses(plan, level, "--save", saved))
                weights.append(next(saved.glob("*/model.safetensors")).read_bytes())
            if level.endswith("+amx"):
                self.assertNotEqual(*weights)
                for one, other in zip(*results, strict=True):
                    self.assertAlmostEqual(float(one["loss"]), float(other["loss"]), delta=2.0**-18 * float(one["loss"]))
            else:
                self.assertEqual(*results)
                self.assertEqual(*weights)

    def test_every_rank_has_the_level(self):
        plan = self.compile("ranks", "--mesh", "tp=2", level=self.levels[0])
        threads, native = self.losses(plan, self.levels[0]), self.losses(plan, self.levels[-1])
        self.assertEqual(self.losses(plan, self.levels[0], "--nproc", 2), threads)
        if len(self.levels) > 1:
            self.assertNotEqual(native, threads)

    def test_unknown_levels_are_errors(self):
        plan = self.compile("x")
        compile_it = ["bowline-compile", tools.MODELS / "llama-tiny", *SHAPE, "-o", self.folder / "y.plan"]
        run_it = ["bowline-run", plan, "--data", tools.TOKENS, "--steps", 1]
        for command in (compile_it, [*compile_it, "--target-cpu", "x86-64-v2"], [*compile_it, "--target", "discrete"],
                        run_it, [*run_it, "--driver", "discrete"], [*run_it, "--driver", "cpu"]):
            for level in ("zen4", "native", "x86-64-v3,x86-64-v4"):
                said = self.refuse(*command, level=level)
                self.assertIn(f"error: the environment's BOWLINE_TARGET_CPU='{level}' is no level of processors; set it to one "
                              f"of {', '.join(tools.LEVELS)}, or unset it", said)
            for level in set(tools.LEVELS) - set(self.levels):
                self.assertIn(f"error: the environment's BOWLINE_TARGET_CPU='{level}' is more than this machine, which is "
                              f"'{self.levels[-1]}'; unset it", self.refuse(*command, level=level))
        self.assertFalse((self.folder / "y.plan").exists())

    def test_tools_that_look_at_plans_do_not_ask(self):
        plan = self.compile("x")
        self.assertIn(b"sound", tools.succeed("bowline-check", plan, env=tools.as_level("zen4")))

    def test_help_names_the_variable(self):
        self.assertIn("BOWLINE_TARGET_CPU", " ".join(tools.succeed("bowline-compile", "--help").decode().split()))


if __name__ == "__main__":
    tools.main()
