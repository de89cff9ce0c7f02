#!/usr/bin/env python3
"""Plans for serving from a paged cache: the result of every step of the compiler, the checker's proofs, and the plans'
round trip through text. ServePlanTest.cpp tests the values that these plans compute."""

import re

import tools

SIZES = ["--mode", "serve", "--buckets", "1,5,16", "--max-batch", "3", "--max-context", "23", "--block-tokens", "4",
         "--kv-blocks", "20", *tools.ONE_THREAD]
# Ranks that divide the key heads, and that share them.
WAYS = {
    "gpt2-tiny": [[], ["--mesh", "tp=3"], ["--mesh", "tp=3", "--kv-dtype", "int8"]],
    "llama-tiny": [[], ["--dtype", "bf16"], ["--kv-dtype", "bf16"], ["--mesh", "tp=2"],
                   ["--kv-dtype", "int8"], ["--kv-dtype", "int8", "--mesh", "tp=2"],
                   ["--target", "discrete"]],
    "mistral-tiny": [[], ["--mesh", "tp=2", "--dtype", "bf16"], ["--dtype", "bf16", "--kv-dtype", "int8"]],
    "qwen2-tiny": [[], ["--dtype", "bf16", "--kv-dtype", "bf16"]],
    "qwen3-tiny": [[], ["--mesh", "tp=4"], ["--mesh", "tp=4", "--kv-dtype", "int8"]],
}


class ServePlans(tools.ToolTest):
    def test_every_step_keeps_what_is_computed(self):
        for model, ways in WAYS.items():
            for flags in ways:
                with self.subTest(model=model, flags=flags):
                    plan, text, again = (self.folder / f"a.{suffix}" for suffix in ("plan", "mlir", "again"))
                    done = tools.start("bowline-compile", tools.MODELS / model, *SIZES, *flags, "--verify-each=equiv",
                                       "-o", plan)
                    self.assertEqual(done.returncode, 0, done.stderr.decode())
                    self.assertRegex(done.stderr.decode(), r"equivalence: \d\d steps kept what a model of this structure")
                    self.assertEqual(tools.succeed("bowline-check", plan).decode().splitlines()[-1], "sound")
                    tools.succeed("bowline-translate", "--plan-to-mlir", plan, "-o", text)
                    self.assertEqual(text.read_text().count("plan.sequences<"), 3)
                    tools.succeed("bowline-translate", "--mlir-to-plan", text, "-o", again)
                    self.assertEqual(plan.read_bytes(), again.read_bytes())

    def test_caches_are_in_no_checkpoint_and_change_in_place(self):
        plan, text = self.folder / "a.plan", self.folder / "a.mlir"
        tools.succeed("bowline-compile", tools.MODELS / "llama-tiny", *SIZES, "-o", plan)
        tools.succeed("bowline-translate", "--plan-to-mlir", plan, "-o", text)
        lines = text.read_text().splitlines()
        self.assertEqual(sum("plan.state %cache." in line and " cache " in line for line in lines), 4)
        self.assertEqual([line for line in lines if "plan.copy" in line and "%cache." in line], [])
        # Two caches of two layers in each of three steps.
        self.assertEqual(sum("plan.launch @cache_write" in line for line in lines), 12)

    def test_the_cache_takes_what_a_limit_of_memory_leaves(self):
        sizes = ["--mode", "serve", "--buckets", "1,5,16", "--max-batch", "64", "--max-context", "23", "--block-tokens",
                 "4", *tools.ONE_THREAD]

        def arena_and_blocks(name, *flags):
            plan, text = self.folder / f"{name}.plan", self.folder / f"{name}.mlir"
            tools.succeed("bowline-compile", tools.MODELS / "llama-tiny", *sizes, *flags, "-o", plan)
            tools.succeed("bowline-translate", "--plan-to-mlir", plan, "-o", text)
            checked = tools.succeed("bowline-check", plan).decode()
            return (int(re.search(r"^arena\s+(\d+) bytes", checked, re.MULTILINE)[1]),
                    int(re.search(r"block_count = (\d+)", text.read_text())[1]) - 1)

        for mesh in ([], ["--mesh", "tp=2"]):
            least, few = arena_and_blocks("few", "--kv-blocks", "6", *mesh)
            limit = least + 100_000
            arena, blocks = arena_and_blocks("limited", "--memory-limit", str(limit), *mesh)
            self.assertLessEqual(arena, limit)
            self.assertGreater(blocks, few)
            self.assertGreater(arena_and_blocks("more", "--kv-blocks", str(blocks + 1), *mesh)[0], limit)
        # No more than the sequences of a step may need, of six blocks each.
        self.assertEqual(arena_and_blocks("all", "--memory-limit", "1GiB")[1], 64 * 6)
        for limit, advice in (("10000", "; weights alone take 162.7 KiB, whatever the sizes of a step: divide them over at least 17 "
                                       "ranks by --mesh with an axis tp"),
                              ("170000", "; use a smaller --max-context")):
            done = tools.start("bowline-compile", tools.MODELS / "llama-tiny", *sizes, "--memory-limit", limit, "-o",
                               self.folder / "x.plan")
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"more than --memory-limit {limit}{advice}", done.stderr.decode())


if __name__ == "__main__":
    tools.main()
