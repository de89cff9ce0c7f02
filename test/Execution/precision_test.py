#!/usr/bin/env python3
"""Training in bf16 follows training in f32, and keeps its parameters in f32; f16 is for generating."""

import json
import shutil
import struct

import tools

STEPS = 60
# Rounding to bf16 is relative 2^-9 for each value; a loss averages over many.
LOSS_TOLERANCE = 0.01


def tensors_of(checkpoint):
    """dtype and bytes by name of a safetensors file."""
    data = checkpoint.read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    return {name: (entry["dtype"], data[8 + length + entry["data_offsets"][0]:8 + length + entry["data_offsets"][1]])
            for name, entry in header.items()}


class Precision(tools.ToolTest):
    def train(self, model, dtype, *flags, steps=STEPS):
        plan, metrics, saved = (self.folder / f"{model}-{dtype}.{kind}" for kind in ("plan", "jsonl", "saved"))
        tools.compile_train(model, plan, "--dtype", dtype, "--lr", "0.003", *flags)
        tools.succeed("bowline-check", plan)
        shutil.rmtree(saved, ignore_errors=True)  # of another run
        metrics.unlink(missing_ok=True)
        tools.succeed("bowline-run", plan, "--data", tools.TOKENS, "--steps", steps, "--order", "shuffle",
                      "--metrics", metrics, "--save", saved, "--quiet")
        return [float(line["loss"]) for line in tools.metrics_of(metrics)], saved

    def test_losses_of_bf16_are_within_one_percent_of_f32(self):
        for model in tools.TRAIN_SHAPES:
            for flags in ([], ["--microbatches", "3"]):
                with self.subTest(model=model, flags=flags):
                    wide, _ = self.train(model, "f32", *flags)
                    narrow, _ = self.train(model, "bf16", *flags)
                    self.assertEqual(len(wide), STEPS)
                    self.assertNotEqual(wide, narrow, "bf16 computed exactly what f32 does: is it used at all?")
                    self.assertLess(min(wide), 0.95 * wide[0], "nothing was learned: the comparison would show little")
                    for step, (expected, actual) in enumerate(zip(wide, narrow), start=1):
                        self.assertLess(abs(actual - expected), LOSS_TOLERANCE * expected, f"step {step}")

    def test_checkpoints_of_bf16_hold_f32(self):
        _, saved = self.train("llama-tiny", "bf16", steps=3)
        parameters = tensors_of(saved / (saved / "latest").read_text().strip() / "model.safetensors")
        self.assertTrue(parameters)
        for name, (dtype, values) in parameters.items():
            self.assertEqual(dtype, "F32", name)
        # Not f32 that was rounded on the way: bf16 has the lower half of the bits zero.
        low_bits = b"".join(values[0::4] + values[1::4] for _, values in parameters.values())
        self.assertGreater(sum(byte != 0 for byte in low_bits), len(low_bits) // 2)

    def test_a_trained_model_generates_in_either_precision(self):
        _, saved = self.train("llama-tiny", "f32", steps=5)
        for dtype in ("f32", "bf16", "f16"):
            plan = self.folder / f"generate-{dtype}.plan"
            tools.compile_generate("llama-tiny", plan, "--dtype", dtype)
            tools.succeed("bowline-check", plan)
            text = tools.succeed("bowline-run", plan, "--weights", saved, "--prompt", "a", "--max-new-tokens", "9",
                                 "--temperature", "0", "--quiet")
            self.assertEqual(len(text), 9, dtype)

    def test_ranks_in_f16_write_the_text_of_one(self):
        """Sums of several ranks are rounded to f16 once; they go into the residual stream, which is f32."""
        _, saved = self.train("llama-tiny", "f32", steps=40)
        texts = {}
        for name, flags in (("one", []), ("two", ["--mesh", "tp=2"])):
            plan = self.folder / f"{name}.plan"
            tools.compile_generate("llama-tiny", plan, "--dtype", "f16", *flags)
            tools.succeed("bowline-check", plan)
            texts[name] = tools.succeed("bowline-run", plan, "--weights", saved, "--prompt", "a", "--max-new-tokens", "5",
                                        "--temperature", "0", "--quiet")
        self.assertEqual(texts["one"], texts["two"])

    def test_all_models_write_in_f16_what_they_write_in_f32(self):
        """The likeliest character of a model that learned something has the largest logit by far."""
        for model in tools.TRAIN_SHAPES:
            with self.subTest(model=model):
                _, saved = self.train(model, "f32", steps=40)
                texts = set()
                for dtype in ("f32", "f16"):
                    plan = self.folder / f"{model}-{dtype}.plan"
                    tools.compile_generate(model, plan, "--dtype", dtype)
                    tools.succeed("bowline-check", plan)
                    texts.add(tools.succeed("bowline-run", plan, "--weights", saved, "--prompt", "a",
                                            "--max-new-tokens", "5", "--temperature", "0", "--quiet"))
                self.assertEqual(len(texts), 1, texts)

    def refused(self, *flags):
        done = tools.start("bowline-compile", tools.MODELS / "llama-tiny", *flags, "-o", self.folder / "x.plan")
        self.assertEqual(done.returncode, 1)
        self.assertFalse((self.folder / "x.plan").exists())
        return done.stderr.decode()

    def test_what_f16_does_not_do_is_refused(self):
        self.assertIn("train with one of f32, bf16", self.refused(*tools.TRAIN_SHAPES["llama-tiny"], "--dtype", "f16"))
        self.assertIn("not supported with --target cuda",
                      self.refused("--mode", "generate", "--seq", "8", "--dtype", "f16", "--target", "cuda"))
        for dtype in ("f64", "q4_k", "i8", "f17"):
            self.assertIn("--dtype", self.refused("--mode", "generate", "--seq", "8", "--dtype", dtype))


if __name__ == "__main__":
    tools.main()
