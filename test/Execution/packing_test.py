#!/usr/bin/env python3
"""Weights that are packed once for all microbatches change memory and time, and not one bit of what is learned."""

import json

import tools

MODELS = ("llama-tied", "llama-tiny", "gpt2-tiny")
SHAPE = ["--batch", "5", "--seq", "19", "--microbatches", "5"]
STEPS = 4
STEPS_OFF = {
    "neither": ["--disable-step", "pack-weights", "--disable-step", "hoist-invariants"],
    "hoisted": ["--disable-step", "pack-weights"],
    "both": [],
}


class Packing(tools.ToolTest):
    def compile(self, model, *flags, name="x"):
        """(path of the plan, its arena in bytes, how many weights it packs)."""
        plan = self.folder / f"{name}.plan"
        tools.succeed("bowline-compile", tools.MODELS / model, *SHAPE, *flags, "-o", plan)
        self.assertEqual(tools.succeed("bowline-check", plan).decode().splitlines()[-1], "sound")
        header = json.loads(tools.succeed("bowline-inspect", plan, "--json"))["header"]
        packed = tools.succeed("bowline-translate", "--plan-to-mlir", plan).decode().count("plan.launch @pack_matrix")
        return plan, header["arena_bytes"], packed

    def train(self, plan):
        """Losses, gradient norms, and the bytes of all files of the checkpoint after some steps."""
        saved, metrics = self.folder / f"saved-{plan.stem}", self.folder / "metrics.jsonl"
        tools.succeed("bowline-run", plan, "--data", tools.TOKENS, "--steps", STEPS, "--order", "shuffle", "--save",
                      saved, "--metrics", metrics, "--quiet")
        lines = tools.metrics_of(metrics)
        self.assertEqual(len(lines), STEPS)
        end = saved / f"step-{STEPS:08d}"
        return lines, {name: (end / name).read_bytes() for name in ("model.safetensors", "optimizer.safetensors")}

    def test_the_same_is_learned_and_saved(self):
        for model in MODELS:
            for flags in (tools.ONE_THREAD, ["--threads", "3"], ["--dtype", "bf16", *tools.ONE_THREAD],
                          ["--recompute", "full", *tools.ONE_THREAD]):
                with self.subTest(model=model, flags=flags):
                    results, packed = {}, {}
                    for name, off in STEPS_OFF.items():
                        plan, _, packed[name] = self.compile(model, *flags, *off, name=name)
                        results[name] = self.train(plan)
                    self.assertEqual(results["hoisted"], results["neither"])
                    self.assertEqual(results["both"], results["neither"])
                    self.assertEqual((packed["neither"], packed["hoisted"]), (0, 0))
                    if "bf16" not in flags:  # which some machines do not pack
                        self.assertGreater(packed["both"], 8)

    def test_a_checkpoint_goes_on_in_either_plan(self):
        """What a packed run saved, a plain one reads, and the other way round."""
        plans = {name: self.compile("llama-tiny", *tools.ONE_THREAD, *STEPS_OFF[name], name=name)[0]
                 for name in ("both", "neither")}
        expected, _ = self.train(plans["neither"])
        self.train(plans["both"])
        for begin, end in (("both", "neither"), ("neither", "both")):
            metrics = self.folder / "resumed.jsonl"
            metrics.unlink(missing_ok=True)
            # Resumed half-way, from a checkpoint of the other plan.
            saved = self.folder / f"half-{begin}"
            common = ["--data", tools.TOKENS, "--order", "shuffle", "--quiet"]
            tools.succeed("bowline-run", plans[begin], *common, "--steps", STEPS // 2, "--save", saved)
            tools.succeed("bowline-run", plans[end], *common, "--steps", STEPS, "--resume", saved, "--metrics", metrics)
            self.assertEqual(tools.metrics_of(metrics), expected[STEPS // 2:])

    def test_memory_limits_come_first(self):
        _, plain, _ = self.compile("llama-tiny", *tools.ONE_THREAD, *STEPS_OFF["neither"])
        _, most, all_packed = self.compile("llama-tiny", *tools.ONE_THREAD)
        self.assertGreater(most, plain)
        before = 0
        for part in range(5):
            limit = plain + (most - plain) * part // 4
            # Padding behind the last buffer counts for the limit.
            _, arena, packed = self.compile("llama-tiny", *tools.ONE_THREAD, "--memory-limit", limit + 64)
            self.assertLessEqual(arena, limit + 64)
            self.assertGreaterEqual(packed, before)
            before = packed
        self.assertEqual(before, all_packed)

    def test_one_call_is_not_packed_for(self):
        plan = self.folder / "one.plan"
        tools.succeed("bowline-compile", tools.MODELS / "llama-tiny", "--batch", "2", "--seq", "19", "-o", plan)
        self.assertNotIn(b"pack_matrix", plan.read_bytes())


if __name__ == "__main__":
    tools.main()
