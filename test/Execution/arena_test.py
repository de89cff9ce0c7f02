#!/usr/bin/env python3
"""The arena of a training plan is at most 5 % larger than what is alive at one time, which no packing can go below."""

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
        """The most bytes alive at one time, as bowline-inspect finds it from what commands touch, and the arena."""
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
                    # A pipeline keeps what several of its segments use throughout, and so not only while it is alive.
                    if len(ratios) == 1:
                        alive, arena = self.alive(plan)
                        self.assertLessEqual(arena / alive, MOST)

    def test_what_lies_behind_the_packed_arena_is_not_packed(self):
        """Second ports of runs in flight do not change what buffers are said to share."""
        for model in ("llama-tiny", "gpt2-tiny"):
            shared = []
            for flags in ([], ["--runs-in-flight", 2]):
                text = tools.succeed("bowline-compile", tools.MODELS / model, *SHAPE, *flags, *tools.ONE_THREAD,
                                     "--no-codegen", "--report", "-o", self.folder / "x.plan").decode()
                shared.append(re.search("^  Temporary and Scratch, sharing: .*", text, re.M)[0])
                self.assertRegex(shared[0], "[0-9] [KM]iB, 1\\.[0-9]+ times")
            self.assertEqual(*shared)


if __name__ == "__main__":
    tools.main()
