#!/usr/bin/env python3
"""Plans without code are those with code, but for the code: checked and shown like them, and never run."""

import json

import tools

VARIANTS = ([], ["--dtype", "bf16"], ["--mesh", "dp=3,tp=2", "--zero", "1"])


class NoCodegen(tools.ToolTest):
    def inspect(self, plan):
        return json.loads(tools.succeed("bowline-inspect", plan, "--json"))

    def test_everything_but_the_code_is_the_same(self):
        for model in ("gpt2-tiny", "llama-tiny"):
            for flags in VARIANTS:
                with self.subTest(model=model, flags=flags):
                    full, bare = self.folder / "full.plan", self.folder / "bare.plan"
                    tools.compile_train(model, full, *flags)
                    tools.compile_train(model, bare, *flags, "--no-codegen")
                    expected, actual = self.inspect(full), self.inspect(bare)
                    self.assertTrue(expected["header"]["has_code"])
                    self.assertFalse(actual["header"]["has_code"])
                    self.assertEqual(actual["header"]["image_bytes"], 0)
                    self.assertLess(bare.stat().st_size,
                                    full.stat().st_size - expected["header"]["image_bytes"] + 4096)
                    for header in (expected["header"], actual["header"]):
                        for key in ("content_hash", "file_bytes", "image_bytes", "has_code"):
                            del header[key]
                    self.assertEqual(actual, expected)
                    proven = [json.loads(tools.succeed("bowline-check", plan, "--json")) for plan in (full, bare)]
                    self.assertTrue(proven[1]["sound"])
                    self.assertFalse(proven[1]["has_code"])
                    self.assertEqual(proven[1]["proofs"], proven[0]["proofs"])

    def test_nobody_runs_them(self):
        plan = self.folder / "bare.plan"
        for flags in (["--batch", 3], ["--batch", 6144, "--mesh", "dp=6144,tp=2"]):
            tools.succeed("bowline-compile", tools.MODELS / "llama-tiny", "--seq", 5, *flags, "--no-codegen", "-o", plan)
            for driver in ("cpu", "null"):
                done = tools.start("bowline-run", plan, "--data", tools.TOKENS, "--steps", 2, "--driver", driver)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertEqual(done.stdout, b"")
                message = done.stderr.decode()
                self.assertEqual(message.count("\n"), 1, message)
                self.assertIn("the plan has no machine code, as it was compiled with --no-codegen", message)

    def test_text_and_back(self):
        plan, text, again = (self.folder / name for name in ("bare.plan", "bare.mlir", "again.plan"))
        tools.compile_train("llama-tiny", plan, "--no-codegen")
        tools.succeed("bowline-translate", "--plan-to-mlir", plan, "-o", text)
        tools.succeed("bowline-translate", "--mlir-to-plan", text, "-o", again)
        self.assertEqual(again.read_bytes(), plan.read_bytes())


if __name__ == "__main__":
    tools.main()
