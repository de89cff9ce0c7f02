#!/usr/bin/env python3
"""Plans for serving from a paged cache: what every step of the compiler makes of them, what is proven of them, and that
they survive as text. What they compute is tested in ServePlanTest.cpp."""

import tools

SIZES = ["--mode", "serve", "--buckets", "1,5,16", "--max-batch", "3", "--max-context", "23", "--block-tokens", "4",
         "--kv-blocks", "20", *tools.ONE_THREAD]
# Ranks that divide the key heads, and that share them.
WAYS = {
    "gpt2-tiny": [[], ["--mesh", "tp=3"]],
    "llama-tiny": [[], ["--dtype", "bf16"], ["--kv-dtype", "bf16"], ["--mesh", "tp=2"],
                   ["--target", "discrete"]],
    "mistral-tiny": [[], ["--mesh", "tp=2", "--dtype", "bf16"]],
    "qwen2-tiny": [[], ["--dtype", "bf16", "--kv-dtype", "bf16"]],
    "qwen3-tiny": [[], ["--mesh", "tp=4"]],
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


if __name__ == "__main__":
    tools.main()
