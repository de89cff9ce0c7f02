#!/usr/bin/env python3
"""The arena of a training plan is at most 5 % larger than the bytes alive at one time, below which no packing can go."""

import json
import re

import tools

MOST = 1.05

# Sequence lengths that axes and chunks of sequences divide.
SHAPE = ["--batch", "8", "--seq", "24"]

STRATEGIES = [
    [],
    ["--dtype", "bf16"],
    ["--microbatches", "4"],
    ["--recompute", "selective"],
    ["--recompute", "full", "--microbatches", "2"],
    ["--optimizer", "sgd", "--disable-step", "merge-fusions"],
    ["--mesh", "dp=2", "--zero", "1", "--microbatches", "2"],
    ["--mesh", "dp=4", "--zero", "3", "--dtype", "bf16"],
    ["--mesh", "tp=2", "--sequence-parallel"],
    ["--mesh", "dp=2,tp=2", "--zero", "2", "--microbatches", "2", "--overlap-chunks", "2"],
    ["--mesh", "pp=2", "--schedule", "1f1b", "--microbatches", "4"],
    ["--mesh", "pp=2,dp=2", "--schedule", "zb_h1", "--microbatches", "4", "--zero", "1"],
]

RATIO = re.compile(r"^  Temporary and Scratch, sharing: .*, ([0-9.]+) times the most bytes alive at one time", re.M)


class Arena(tools.ToolTest):
    def alive(self, plan):
        """The most bytes alive at one time, as bowline-inspect finds it from the commands' accesses, and the arena."""
        inspected = json.loads(tools.succeed("bowline-inspect", plan, "--memory", "--json"))
        return max(entry["memory"]["peak_bytes"] for entry in inspected["entries"]), inspected["header"]["arena_bytes"]

    def test_packing_is_near_the_least(self):
        plan = self.folder / "x.plan"
        for model in sorted(tools.TRAIN_SHAPES):
            for flags in STRATEGIES:
                with self.subTest(model=model, flags=flags):
                    text = tools.succeed("bowline-compile", tools.MODELS / model, *SHAPE, *flags, *tools.ONE_THREAD,
                                         "--no-codegen", "--report", "-o", plan).decode()
                    ratios = [float(ratio) for ratio in RATIO.findall(text)]
                    self.assertEqual(len(ratios), 2 if "--schedule" in flags else 1, text)
                    for ratio in ratios:
                        self.assertGreaterEqual(ratio, 1)
                        self.assertLessEqual(ratio, MOST)
                    # A pipeline keeps buffers that several of its segments use throughout, not only while they are alive.
                    if len(ratios) == 1:
                        alive, arena = self.alive(plan)
                        self.assertLessEqual(arena / alive, MOST)

    def test_what_lies_behind_the_packed_arena_is_not_packed(self):
        """Second ports of runs in flight do not change which buffers are said to share bytes."""
        for model in ("llama-tiny", "gpt2-tiny"):
            shared = []
            for flags in ([], ["--runs-in-flight", 2]):
                text = tools.succeed("bowline-compile", tools.MODELS / model, *SHAPE, *flags, *tools.ONE_THREAD,
                                     "--no-codegen", "--report", "-o", self.folder / "x.plan").decode()
                shared.append(re.search("^  Temporary and Scratch, sharing: .*", text, re.M)[0])
                self.assertRegex(shared[0], "[0-9] [KM]iB, 1\\.[0-9]+ times")
            self.assertEqual(*shared)

    def test_stages_are_named(self):
        """Reports name the stage of a pipeline to which buffers and entries belong, and give the sizes of that stage alone."""
        plan = self.folder / "x.plan"
        text = tools.succeed("bowline-compile", tools.MODELS / "llama-tiny", *SHAPE, "--mesh", "pp=2", "--microbatches", 4,
                             *tools.ONE_THREAD, "--no-codegen", "--report", "-o", plan).decode()
        described = json.loads(tools.succeed("bowline-inspect", plan, "--memory", "--json"))
        roles = {entry["role"] for entry in described["entries"]}
        self.assertEqual(len(roles), 2)
        self.assertRegex(text, "arena: .*, that of the role that needs the most\n")
        inspected = tools.succeed("bowline-inspect", plan, "--memory").decode()
        for role in roles:
            for kind in ("Parameter", "State"):
                self.assertRegex(text, f"\n  {kind}: [0-9.]+ KiB, of role {role}\n")
            for entry in ("train_step", "eval_step", "init"):
                self.assertIn(f"\nentry {entry}, of role {role}: ", text)
                self.assertIn(f"\n  {entry} of role '{role}' (", inspected)
        self.assertNotIn("(by )", inspected)
        # Nothing is fused in entries that only set initial values.
        self.assertNotRegex(text, "entry init.*if nothing were fused")

    def test_no_role_is_named_where_there_is_one(self):
        text = tools.succeed("bowline-compile", tools.MODELS / "llama-tiny", *SHAPE, *tools.ONE_THREAD, "--no-codegen",
                             "--report", "-o", self.folder / "x.plan").decode()
        self.assertNotIn("role", text)
        self.assertRegex(text, "entry train_step: .*if nothing were fused")


if __name__ == "__main__":
    tools.main()
