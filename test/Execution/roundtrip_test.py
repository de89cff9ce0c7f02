#!/usr/bin/env python3
"""Plans and the IR of every phase survive as text: what is read back continues to the same bytes."""

import tools

PLANS = (("train", tools.compile_train, []), ("parts", tools.compile_train, ["--microbatches", "3"]),
         ("ranks", tools.compile_train, ["--mesh", "dp=3,tp=2", "--zero", "2"]),
         ("generate", tools.compile_generate, []))


class RoundTrip(tools.ToolTest):
    def test_translate(self):
        for model in tools.TRAIN_SHAPES:
            for name, compile_plan, flags in PLANS:
                with self.subTest(model=model, plan=name):
                    plan, text, again = (self.folder / f"a.{suffix}" for suffix in ("plan", "mlir", "again"))
                    compile_plan(model, plan, *flags)
                    tools.succeed("bowline-translate", "--plan-to-mlir", plan, "-o", text)
                    tools.succeed("bowline-opt", "--verify-roundtrip", text, "-o", "/dev/null")
                    tools.succeed("bowline-translate", "--mlir-to-plan", text, "-o", again)
                    self.assertEqual(plan.read_bytes(), again.read_bytes())

    def test_every_phase(self):
        phases = ["input", "graph", "train", "shard", "local", "fuse", "schedule", "codegen", "hoist", "overlap",
                  "memory"]
        # A strategy is in the text, from the first phase on.
        for model, mode, flags, strategy in (
                ("llama-tiny", "train", ["--batch", "4", "--seq", "5"], ["--microbatches", "2"]),
                ("llama-tiny", "train", ["--batch", "4", "--seq", "5", "--no-codegen"], ["--mesh", "dp=2", "--zero", "2"]),
                ("llama-tied", "train", ["--batch", "4", "--seq", "6", "--no-codegen"],
                 ["--mesh", "pp=2,dp=2,tp=2", "--zero", "3", "--microbatches", "2", "--sequence-parallel"]),
                ("gpt2-tiny", "generate", ["--seq", "7"], [])):
            schedule = ["--lr-schedule", "cosine", "--warmup-steps", "3", "--decay-steps", "9"] if mode == "train" else []
            code = ["--no-codegen"] if "--no-codegen" in flags else []

            def read_after(phase):
                """The flags that phases behind this one read."""
                at = phases.index(phase)
                return [*(["--mode", mode] if at < phases.index("fuse") else []),
                        *(schedule if at < phases.index("train") else []),
                        *(code if at < phases.index("codegen") else [])]

            flags = ["--mode", mode, *tools.ONE_THREAD, *flags, *schedule]
            straight = self.folder / "straight.plan"
            tools.succeed("bowline-compile", tools.MODELS / model, *flags, *strategy, "-o", straight)
            previous, origin = "input", tools.MODELS / model
            for phase in phases:
                with self.subTest(model=model, strategy=strategy, phase=phase):
                    text, plan = self.folder / f"{phase}.mlir", self.folder / f"{phase}.plan"
                    # Each phase starts from the text of the one before it.
                    start = [*strategy, *flags] if origin.is_dir() else [
                        "--compile-from", previous, *read_after(previous), *tools.ONE_THREAD]
                    tools.succeed("bowline-compile", origin, *start, f"--compile-to={phase}", "-o", text)
                    tools.succeed("bowline-opt", "--verify-roundtrip", text, "-o", "/dev/null")
                    tools.succeed("bowline-compile", text, "--compile-from", phase, *read_after(phase),
                                  *tools.ONE_THREAD, "-o", plan)
                    self.assertEqual(straight.read_bytes(), plan.read_bytes())
                    previous, origin = phase, text


if __name__ == "__main__":
    tools.main()
