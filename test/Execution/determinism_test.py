#!/usr/bin/env python3
"""Equal inputs give equal plans, and equal plans equal runs, bit for bit."""

import os
import shutil

import tools


class Determinism(tools.ToolTest):
    def test_two_compilations_give_the_same_bytes(self):
        for model in tools.TRAIN_SHAPES:
            for name, compile_plan, flags in (("train", tools.compile_train, []),
                                              ("parts", tools.compile_train, ["--microbatches", "3"]),
                                              ("generate", tools.compile_generate, [])):
                with self.subTest(model=model, plan=name):
                    first, second = self.folder / "first.plan", self.folder / "second.plan"
                    compile_plan(model, first, *flags, "--kernel-cache", "off")
                    # Another environment and another working folder are no inputs.
                    tools.succeed("bowline-compile", os.path.relpath(tools.MODELS / model, self.folder), "--mode",
                                  "generate" if name == "generate" else "train",
                                  *(["--seq", "29"] if name == "generate" else tools.TRAIN_SHAPES[model]), *tools.ONE_THREAD,
                                  *flags, "--kernel-cache", "off", "-o", "second.plan", cwd=self.folder, env={"HOME": "/", "LC_ALL": "C", "TZ": "X-9"})
                    self.assertEqual(first.read_bytes(), second.read_bytes())

    def test_kernels_from_the_cache_are_the_bytes_that_would_be_compiled(self):
        cache = self.folder / "cache"
        plans = []
        for name, flag in (("without", "off"), ("filling", cache), ("filled", cache)):
            plans.append(self.folder / f"{name}.plan")
            tools.compile_train("llama-tiny", plans[-1], "--kernel-cache", flag)
            if name == "filling":
                entries = {path: path.read_bytes() for path in cache.iterdir()}
        self.assertGreater(len(entries), 10)
        # No entry was added, and no entry was written again.
        self.assertEqual({path: path.read_bytes() for path in cache.iterdir()}, entries)
        self.assertEqual(len({plan.read_bytes() for plan in plans}), 1)
        for path, content in entries.items():
            path.write_bytes(content[: len(content) // 2])
        plans.append(self.folder / "damaged.plan")
        tools.compile_train("llama-tiny", plans[-1], "--kernel-cache", cache)
        self.assertEqual(plans[-1].read_bytes(), plans[0].read_bytes())
        self.assertEqual({path: path.read_bytes() for path in cache.iterdir()}, entries)

    def test_a_cache_that_cannot_be_used_is_one_remark(self):
        blocked = self.folder / "file"
        blocked.write_text("")
        done = tools.start("bowline-compile", tools.MODELS / "llama-tiny", *tools.TRAIN_SHAPES["llama-tiny"],
                           "--kernel-cache", blocked / "cache", "-o", self.folder / "x.plan")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.decode().count("kernels are not kept for the next compilation"), 1, done.stderr)

    def test_the_path_of_the_model_is_no_input(self):
        original, copied = self.folder / "original.plan", self.folder / "copied.plan"
        tools.compile_train("llama-tiny", original)
        elsewhere = self.folder / "some where" / "llama-tiny"
        shutil.copytree(tools.MODELS / "llama-tiny", elsewhere)
        flags = [*tools.TRAIN_SHAPES["llama-tiny"], *tools.ONE_THREAD]
        tools.succeed("bowline-compile", str(elsewhere) + "/", *flags, "-o", copied)
        self.assertEqual(original.read_bytes(), copied.read_bytes())
        # The name of the folder is: it is the plan's name.
        renamed = elsewhere.rename(elsewhere.parent / "another-name")
        tools.succeed("bowline-compile", renamed, *flags, "-o", copied)
        self.assertIn(b"another-name", copied.read_bytes())

    def test_what_is_asked_for_changes_the_bytes(self):
        plans = []
        for index, flags in enumerate(([], ["--seed", "1"], ["--lr", "0.002"], ["--disable-step", "merge-fusions"])):
            plans.append(self.folder / f"{index}.plan")
            tools.compile_train("qwen2-tiny", plans[-1], *flags)
        self.assertEqual(len({plan.read_bytes() for plan in plans}), len(plans))

    def test_two_runs_give_the_same_losses(self):
        for model in tools.TRAIN_SHAPES:
            plan = self.folder / f"{model}.plan"
            tools.compile_train(model, plan, "--microbatches", "3", "--seed", "7",
                                threads=2 if model == "llama-tiny" else 1)
            for order in ("sequential", "shuffle"):
                with self.subTest(model=model, order=order):
                    runs = []
                    for name in ("a", "b"):
                        metrics = self.folder / f"{model}-{order}-{name}.jsonl"
                        # The second run writes over memory that is not fresh: a value read before it is written shows.
                        tools.succeed("bowline-run", plan, "--data", tools.TOKENS, "--steps", 12, "--order", order,
                                      "--metrics", metrics, "--quiet",
                                      env={"MALLOC_PERTURB_": "0" if name == "a" else "165"})
                        runs.append(tools.metrics_of(metrics))
                    self.assertEqual(len(runs[0]), 12)
                    self.assertEqual(runs[0], runs[1])


if __name__ == "__main__":
    tools.main()
