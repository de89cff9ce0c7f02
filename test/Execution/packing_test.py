#!/usr/bin/env python3
"""Weights that are packed once, for all microbatches or for all calls, change memory and time, and not one bit of what is
learned or written."""

import json
import re
import shutil

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
        shutil.rmtree(saved, ignore_errors=True)  # of another run
        metrics.unlink(missing_ok=True)
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
                    if "full" in flags:  # which gives arithmetic for memory
                        self.assertEqual(packed["both"], 0)
                    elif "bf16" not in flags:  # which some machines do not pack
                        self.assertGreater(packed["both"], 8)

    def test_a_checkpoint_goes_on_in_either_plan(self):
        """A plain run resumes from the checkpoint of a packed run, and a packed run from that of a plain one."""
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


class PreparedPacking(tools.ToolTest):
    """Plans that only generate compute values that depend on weights alone once, when weights are set."""

    OFF = ["--disable-step", "pack-weights", "--disable-step", "hoist-into-prepare"]
    TOKENS = 7

    def compile(self, model, *flags, name="g"):
        """(path of the plan, its description, commands of the entry `prepare`, bytes that it computes)."""
        plan = self.folder / f"{name}.plan"
        threads = [] if "--threads" in flags else tools.ONE_THREAD
        tools.succeed("bowline-compile", tools.MODELS / model, "--mode", "generate", "--seq", "28", *threads, *flags,
                      "-o", plan)
        report = json.loads(tools.succeed("bowline-check", plan, "--json"))
        self.assertTrue(report["sound"])
        commands = sum(entry["launches"] for entry in report["entries"] if entry["name"] == "prepare")
        return plan, report, commands, report["roles"][0]["prepared_bytes"]

    def generate(self, plan, model, *flags):
        done = tools.start("bowline-run", plan, "--weights", tools.MODELS / model, "--prompt", "A knot",
                           "--max-new-tokens", self.TOKENS, "--seed", 3, *flags)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return done

    def test_the_same_text(self):
        for model in MODELS:
            for flags in ([], ["--threads", "3"], ["--dtype", "bf16"], ["--mesh", "tp=2"],
                          ["--mesh", "tp=2", "--sequence-parallel", "--dtype", "bf16"]):
                with self.subTest(model=model, flags=flags):
                    plain, report, commands, prepared = self.compile(model, *flags, *self.OFF, name="plain")
                    self.assertEqual((commands, prepared), (0, 0))
                    packed, _, commands, prepared = self.compile(model, *flags, name="packed")
                    self.assertGreater(commands, 0)
                    self.assertGreater(prepared, 0)
                    expected = self.generate(plain, model).stdout
                    self.assertEqual(len(expected), self.TOKENS)
                    self.assertEqual(self.generate(packed, model).stdout, expected)
                    if "--mesh" in flags:
                        self.assertEqual(self.generate(packed, model, "--nproc", "2").stdout, expected)

    def test_once_for_all_tokens(self):
        plan, _, _, _ = self.compile("llama-tiny")
        packed = tools.succeed("bowline-translate", "--plan-to-mlir", plan).decode().count("plan.launch @pack_matrix")
        self.assertGreater(packed, 8)
        table = self.generate(plan, "llama-tiny", "--profile").stderr.decode()
        launches = {name: int(count) for name, count in re.findall(r"^(pack_matrix|matmul) +(\d+) ", table, re.M)}
        self.assertEqual(launches["pack_matrix"], packed)
        self.assertGreaterEqual(launches["matmul"], self.TOKENS * packed)

    def test_memory_limits_come_first(self):
        plain = self.compile("llama-tiny", *self.OFF)[1]["roles"][0]["arena_bytes"]
        _, report, commands, most = self.compile("llama-tiny")
        arena = report["roles"][0]["arena_bytes"]
        self.assertGreater(arena, plain)
        before = 0
        for part in range(5):
            # Padding behind the last buffer counts for the limit.
            limit = plain + (arena - plain) * part // 4 + 64
            _, report, commands, prepared = self.compile("llama-tiny", "--memory-limit", limit)
            self.assertLessEqual(report["roles"][0]["arena_bytes"], limit)
            self.assertGreaterEqual(prepared, before)
            before = prepared
        self.assertEqual(before, most)

    def test_plans_are_compared_in_turns(self):
        plain, packed = self.compile("llama-tiny", *self.OFF, name="plain")[0], self.compile("llama-tiny")[0]
        said = tools.succeed("bowline-plan-bench", plain, packed, "generate", 0.1).decode()
        self.assertRegex(said, r"^[0-9]+ pairs, outputs equal: .* ratio [0-9.]+, median of pairs; load [0-9.]+\n$")
        other = self.compile("llama-tied", name="other")[0]
        self.assertIn("outputs DIFFER", tools.succeed("bowline-plan-bench", packed, other, "generate", 0).decode())
        self.assertEqual(tools.start("bowline-plan-bench", plain, packed, "train_step", 1).returncode, 1)

    def test_training_prepares_nothing(self):
        plan = self.folder / "train.plan"
        tools.compile_train("llama-tiny", plan)
        report = json.loads(tools.succeed("bowline-check", plan, "--json"))
        self.assertNotIn("prepare", [entry["name"] for entry in report["entries"]])


if __name__ == "__main__":
    tools.main()
