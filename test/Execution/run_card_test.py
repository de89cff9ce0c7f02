#!/usr/bin/env python3
"""`run-card` of the bundle for machines with a card, on the stand-ins: each phase's command lines, what it reads out of
their output, a phase that hangs, one that fails, one for which no time is left. Times are those of a processor."""

import json
import os
import pathlib
import shutil
import subprocess

import tools

SCRIPTS = tools.TEST_DIR.parent / "scripts"
# The names that run-card knows, with small models of the same families.
MODELS = {"llama-1b": "llama-tiny", "gpt2-124m": "gpt2-tiny", "gpt2-1.5b": "gpt2-tiny", "llama-8b-16-layers": "llama-tiny"}
# So that heads are of sizes that cuDNN takes.
CONFIGS = {"llama-tiny": {"head_dim": 8}, "gpt2-tiny": {"n_embd": 48, "n_inner": 64}}
# Cases of losses.json that this test takes.
CASES = ("llama-f32", "heads-of-64", "epilogues-bf16", "tp=2")
PROGRAMS = ("hal-test", "cuda-card-test", "recording-test", "session-overlap-loopback-test", "session-fault-test")
# One test of each suite, since the suites are entries of ctest themselves.
FILTER = ":".join(["Recordings.AreLeftOutWhereCommandsEndOneByOne", "CudnnAttention.OfOneQuery", "CudaEpilogues.Tuned",
                   "Nccl.MemoryIsTakenBackBeforeItIsFreed", "CudaKernels.Fill", "*/CudaGraphs*", "*/cuda_*Streams*",
                   "CudaKernels.AttentionByMatrixInstructions"])

NVIDIA_SMI = """#!/usr/bin/env python3
import sys
known = {"name": "NVIDIA H100 80GB HBM3", "driver_version": "580.1", "memory.total": "81559", "memory.used": "4321",
         "clocks.max.sm": "1980", "power.limit": "700.00", "clocks.sm": "345"}
fields, = [a.split("=")[1] for a in sys.argv if a.startswith("--query-gpu=")]
print(", ".join(known[field] for field in fields.split(",")))
"""

# Prints the output of NVIDIA's tool, and runs the program.
COMPUTE_SANITIZER = """#!/bin/bash
while [[ $1 == --* ]]; do shift 2; done
"$@" || exit
echo "========= ERROR SUMMARY: 0 errors"
"""

BENCH_TORCH = """print('{"step_ms": 12.5, "warmup_s": 1.0, "peak_gib": 3.25}')"""


class RunCard(tools.ToolTest):
    @classmethod
    def setUpClass(cls):
        cls.shared = pathlib.Path(tools.tempfile.mkdtemp(prefix="bowline-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared, ignore_errors=True)
        bundle = cls.shared / "bundle"
        shutil.copytree(SCRIPTS / "gpu-bundle", bundle, ignore=shutil.ignore_patterns("__pycache__", "models"))
        for name, model in MODELS.items():
            (bundle / "models" / name).mkdir(parents=True)
            config = json.loads((tools.MODELS / model / "config.json").read_text())
            (bundle / "models" / name / "config.json").write_text(json.dumps({**config, **CONFIGS[model]}))
        models = json.loads((bundle / "models.json").read_text())
        for model in models.values():
            model.update(batch=2, seq=16, steps=6, kernels={"copy_bytes": 1 << 16, "product": 32, "seconds": 0})
        (bundle / "models.json").write_text(json.dumps(models))
        cases = json.loads((bundle / "losses.json").read_text())
        (bundle / "losses.json").write_text(json.dumps({name: {**cases[name], "seq": 9} for name in CASES}))
        (bundle / "bench_torch.py").write_text(BENCH_TORCH)
        (bundle / "bin").mkdir()
        folder = pathlib.Path(tools.tool("bowline-run")).parent
        for name in ("bowline-run", "bowline-inspect", "bowline-card-bench", "libbowline_cuda.so", "libbowline_discrete.so"):
            (bundle / "bin" / name).symlink_to(folder / name)
        (bundle / "bin/fixture_kernels.so").symlink_to(folder.parent / "test/Unit/Plan/fixture_kernels.so")
        for name in PROGRAMS:
            (bundle / "bin" / name).symlink_to(folder.parent / "test/bin" / name)
        done = subprocess.run([SCRIPTS / "make-card-plans.py", folder, bundle, "--compiler",
                               folder.parent / "test/bin/bowline-compile-emulated", "--steps", "3"], check=False, capture_output=True,
                              text=True, timeout=tools.TIMEOUT_SECONDS, env={**os.environ, "BOWLINE_CACHE_DIR": tools.kernel_cache()})
        if done.returncode != 0:
            raise AssertionError(done.stdout + done.stderr)
        cls.path = cls.shared / "path"
        (cls.path / "torch").mkdir(parents=True)
        (cls.path / "torch/__init__.py").touch()
        for name, text in (("nvidia-smi", NVIDIA_SMI), ("compute-sanitizer", COMPUTE_SANITIZER)):
            (cls.path / name).write_text(text)
            (cls.path / name).chmod(0o755)
        cls.bundle = bundle

    def run_card(self, *arguments, code=0, bundle=None, **more):
        environment = tools.with_stand_ins(BOWLINE_CUDA_STAND_IN="1", GTEST_FILTER=FILTER, PYTHONPATH=str(self.path),
                                           PATH=f"{self.path}:{os.environ['PATH']}", **more)
        done = subprocess.run([(bundle or self.bundle) / "run-card", "--results", self.folder / "results", *map(str, arguments)],
                              check=False, capture_output=True, text=True, timeout=4 * tools.TIMEOUT_SECONDS,
                              env=environment)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def result(self, phase):
        return json.loads((self.folder / "results" / f"{phase}.json").read_text())

    def summary(self):
        return (self.folder / "results" / "summary.md").read_text()

    def broken(self, name, text):
        """The bundle with another program of that name."""
        bundle = self.folder / "bundle"
        shutil.copytree(self.bundle, bundle, symlinks=True)
        (bundle / name).unlink()
        (bundle / name).write_text(text)
        (bundle / name).chmod(0o755)
        return bundle

    def test_losses(self):
        self.run_card("--only", "card,losses")
        self.assertEqual(self.result("card")["card"]["name"], "NVIDIA H100 80GB HBM3")
        rows = {(row["plan"], row["driver"]): row for row in self.result("losses")["losses"]}
        cases = json.loads((self.bundle / "losses.json").read_text())
        self.assertEqual(set(rows), {(name, driver) for name in CASES for driver in cases[name]["drivers"]})
        for (_, driver), row in rows.items():
            self.assertLess(row["difference"], 5e-3)
            self.assertEqual(row["bits"], "those without graphs" if "graphs=1" in driver else "")
        self.assertIn("| losses | 20 steps of small plans beside a processor's losses | held |", self.summary())

    def test_training(self):
        self.run_card("--only", "card,gpt2-124m,torch,kernels,traces")
        result = self.result("gpt2-124m")
        names = [row["choice"] for row in result["training"]]
        self.assertEqual(names[:5], ["own", "own, graphs", "cuDNN", "cuDNN, any order", "own, tuned"])
        self.assertIn("own, no epilogues", names)
        parameters = json.loads((self.bundle / "plans.json").read_text())["gpt2-124m"]["parameters"]
        for row in result["training"]:
            self.assertNotIn("error", row)
            self.assertEqual(row["memory_mib"], 4321)
            self.assertGreater(row["host_ms"], 0)
            self.assertAlmostEqual(row["tokens_per_s"] * row["step_ms"], 32e3, delta=1)
            self.assertAlmostEqual(row["mfu"] * 989e12, row["tokens_per_s"] * 6 * parameters, delta=1e6)
            # Two layers, 48 wide in three heads, 16 positions.
            self.assertAlmostEqual((row["mfu_attention"] - row["mfu"]) * 989e12, row["tokens_per_s"] * 6 * 2 * 48 * 16,
                                   delta=1e6)
        self.assertEqual(result["fastest"]["step_ms"], min(row["step_ms"] for row in result["training"]))
        torch = self.result("torch")["torch"]
        self.assertEqual([(row["model"], row["who"]) for row in torch],
                         [(model, who) for model in ("gpt2-124m", "llama-1b") for who in ("ours", "torch") * 2])
        self.assertEqual(torch[1]["step_ms"], 12.5)
        self.assertEqual(torch[0]["settings"], result["fastest"]["settings"])
        self.assertIn("times PyTorch's speed", self.summary())
        kernels = self.result("kernels")["kernels"]["kernels"]
        self.assertIn("attention_backward", {row["kernel"] for row in kernels if row["step_launches"]})
        self.assertTrue(all(0 <= row["step_launches"] <= row["launches"] for row in kernels))
        rows = self.result("traces")["traces"]
        self.assertGreater(len([row for row in rows if row["predicted_us"]]), 5)

    def test_suites_and_sanitizer(self):
        self.run_card("--only", "suites,sanitizer")
        rows = self.result("suites")["suites"]
        self.assertEqual({row["suite"] for row in rows}, {"replay", "attention", "epilogues", "nccl"})
        for row in rows:
            self.assertEqual((row["verdict"], row["failed"]), ("passed", 0))
            self.assertGreater(row["passed"], 0)
        self.assertEqual([(row["tool"], row["ran"]) for row in self.result("sanitizer")["sanitizer"]],
                         [("memcheck", True), ("racecheck", True)])

    def test_what_fails_is_named_and_the_rest_goes_on(self):
        bundle = self.broken("bin/bowline-run", "#!/bin/bash\necho 'bowline-run: error: no card' >&2\nexit 3\n")
        self.run_card("--only", "losses,gpt2-124m,traces,card", code=1, bundle=bundle)
        for phase in ("losses", "gpt2-124m", "traces"):
            result = self.result(phase)
            self.assertEqual(result["verdict"], "failed")
            self.assertIn("exit status 3: bowline-run: error: no card", result["why"])
        self.assertEqual(self.result("card")["verdict"], "held")

    def test_a_suite_that_fails(self):
        text = ("#!/bin/bash\necho '[  FAILED  ] Nccl.Sums (3 ms)'\n"
                "printf '%-12s %6d %6d %7d %7d  %s\\n' $1 4 1 0 2 'failed, exit 1'\nexit 1\n")
        self.run_card("--only", "suites", code=1, bundle=self.broken("run-tests", text))
        result = self.result("suites")
        self.assertEqual(result["verdict"], "failed")
        self.assertEqual(result["suites"][-1]["failures"], ["Nccl.Sums"])

    def test_what_hangs_is_stopped_and_the_rest_is_left_out(self):
        bundle = self.broken("bin/bowline-run", "#!/bin/bash\nsleep 1000 & wait\n")
        self.run_card("--minutes", "0.1", "--only", "gpt2-124m,traces", code=1, bundle=bundle)
        self.assertEqual(self.result("gpt2-124m")["verdict"], "stopped")
        self.assertEqual(self.result("traces")["verdict"], "not run")
        self.assertIn("no time was left", self.summary())

    def test_losses_that_differ(self):
        bundle = self.folder / "bundle"
        shutil.copytree(self.bundle, bundle, symlinks=True)
        path = bundle / "plans/losses/llama-f32.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        lines[2]["loss"] += 2e-4
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        self.run_card("--only", "losses", code=1, bundle=bundle)
        self.assertIn("llama-f32 with 'graphs=0': a loss differs from the processor's by 0.0002", self.result("losses")["why"])

    def test_wrong_calls(self):
        self.assertIn("there is no phase 'all'", self.run_card("--only", "all", code=2).stderr)
        self.assertIn("is not a number above 0", self.run_card("--minutes", "0", code=2).stderr)
        self.run_card("--minutes", "3", "--quick", code=2)


if __name__ == "__main__":
    tools.main()
