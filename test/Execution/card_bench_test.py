#!/usr/bin/env python3
"""`run-bench kernels` of the bundle for machines with a card, on the stand-in: that each kernel of a plan is launched and
timed, and what is computed from the times. The times themselves are those of a processor and say nothing of a card."""

import json
import os
import shutil
import subprocess

import tools

BUNDLE = tools.TEST_DIR.parent / "scripts" / "gpu-bundle"
MODEL = "gpt2-124m"  # a name that run-bench knows; its plan here is that of a small model


class CardBench(tools.ToolTest):
    def bundle(self, model, *flags):
        folder = self.folder / "bundle"
        (folder / "plans").mkdir(parents=True, exist_ok=True)
        for name in ("run-bench", "bundle.py", "models.json"):
            shutil.copy(BUNDLE / name, folder)
        if not (folder / "bin").exists():
            (folder / "bin").symlink_to(os.path.dirname(tools.tool("bowline-run")))
        tools.compile_emulated(model, folder / "plans" / f"{MODEL}.plan", *flags)
        return folder

    def bench(self, bundle, *arguments, code=0):
        done = subprocess.run([bundle / "run-bench", "kernels", *map(str, arguments)], cwd=self.folder, check=False,
                              capture_output=True, text=True, timeout=tools.TIMEOUT_SECONDS, env=tools.with_stand_ins())
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def check(self, model, *flags):
        bundle = self.bundle(model, *flags)
        table = self.bench(bundle, MODEL, 1 << 16, 32, 0).stdout
        result = json.loads((self.folder / f"kernels-{MODEL}.json").read_text())
        # Nobody takes these numbers for a card's.
        self.assertTrue(result["device"].startswith("stand-in (sm_90), CUDA driver "), result["device"])
        self.assertIn(f"device   {result['device']}\n", table)
        self.assertIn(f"Times are those of {result['device']}.\n", table)
        for ceiling, rate in (("copy", "gb_per_s"), ("product", "tflop_per_s")):
            self.assertGreater(result[ceiling][rate], 0)
        described = json.loads(tools.succeed("bowline-inspect", bundle / "plans" / f"{MODEL}.plan", "--kernels", "--json"))
        plan = [kernel for kernel in described["kernels"] if kernel["launches"]]
        self.assertEqual(
            sorted((row["kernel"].split()[0], row["generated"], row["launches"], row["bytes"], row["flops"])
                   for row in result["kernels"]),
            sorted((kernel["name"], kernel["origin"] == "Generated", kernel["launches"], kernel["bytes"], kernel["flops"])
                   for kernel in plan))
        self.assertGreater(len(plan), 5)
        for row in result["kernels"]:
            with self.subTest(kernel=row["kernel"]):
                self.check_row(row, result)
                self.assertIn(row["kernel"][:44], table)
        totals = [row["launches"] * row["us"] for row in result["kernels"]]
        self.assertEqual(totals, sorted(totals, reverse=True))
        return result

    def check_row(self, row, result):
        self.assertGreater(row["us"], 0)
        self.assertGreaterEqual(row["spread_us"], 0)
        self.assertGreaterEqual(row["measurements"], 3)
        for rate, work, share, ceiling in (("gb_per_s", "bytes", "share_of_copy", result["copy"]["gb_per_s"]),
                                           ("tflop_per_s", "flops", "share_of_product", result["product"]["tflop_per_s"])):
            unit = 1e3 if rate == "gb_per_s" else 1e6
            self.assertAlmostEqual(row[rate] * row["us"] * unit, row[work], delta=1e-6 * row[work])
            self.assertAlmostEqual(row[share] * ceiling, row[rate], delta=1e-6 * row[rate])
        is_product = row["kernel"].startswith("matmul ")
        self.assertEqual("beside_us" in row, is_product)
        if is_product:
            batch, m, n, k = map(int, row["kernel"].split()[1].split("x"))
            # An epilogue does something with each element of the result.
            of_epilogue, rest = divmod(row["flops"] - 2 * batch * m * n * k, batch * m * n)
            self.assertEqual((of_epilogue in (0, 1), rest), (True, 0))
            self.assertAlmostEqual(row["share_of_beside"], row["beside_us"] / row["us"], delta=1e-6 * row["share_of_beside"])

    def test_training(self):
        result = self.check("llama-tiny", *tools.TRAIN_SHAPES["llama-tiny"], "--dtype", "bf16")
        names = {row["kernel"].split()[0] for row in result["kernels"]}
        self.assertLessEqual({"matmul", "attention_forward", "attention_backward", "gather_rows", "scatter_add_rows"}, names)

    def test_learned_positions_and_text(self):
        self.check("gpt2-tiny", "--mode", "generate", "--seq", "9")

    def test_wrong_calls(self):
        bundle = self.bundle("llama-tiny", *tools.TRAIN_SHAPES["llama-tiny"], "--mesh", "dp=3")
        done = self.bench(bundle, MODEL, 1 << 16, 32, 0, code=1)
        self.assertIn("is for several ranks; compile it for one", done.stderr)
        self.assertFalse((self.folder / f"kernels-{MODEL}.json").exists())
        done = self.bench(bundle, "llama-1b", 1 << 16, 32, 0, code=1)
        self.assertIn("llama-1b.plan", done.stderr)
        self.assertIn("run-bench kernels [MODEL", self.bench(bundle, "no-such-model", code=2).stdout)
        self.assertIn("usage: bowline-card-bench", self.bench(bundle, MODEL, "much", 32, 0, code=1).stderr)


if __name__ == "__main__":
    tools.main()
