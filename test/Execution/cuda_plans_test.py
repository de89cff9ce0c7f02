#!/usr/bin/env python3
"""Plans for CUDA devices, as far as a machine without one can tell: proven, equal in meaning, and made of kernels that
keep everything in registers and move as many bytes per access as rows allow."""

import importlib.util
import json
import os
import re

import tools

ARCHITECTURES = ("sm_80", "sm_90a", "sm_100")
TYPES = ("f32", "bf16")

# GPT-3 (Brown et al., 2020) and Llama 3.1 405B (Grattafiori et al., 2024), one layer of each.
GPT3 = {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_embd": 12288, "n_head": 96, "n_layer": 1,
        "n_positions": 2048, "vocab_size": 50257, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-05,
        "initializer_range": 0.02, "tie_word_embeddings": True, "bos_token_id": 256, "eos_token_id": 256}
LLAMA = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 16384, "num_hidden_layers": 1,
         "num_attention_heads": 128, "num_key_value_heads": 8, "intermediate_size": 53248, "vocab_size": 128256,
         "max_position_embeddings": 8192, "hidden_act": "silu", "rms_norm_eps": 1e-05, "rope_theta": 500000.0,
         "initializer_range": 0.02, "tie_word_embeddings": False, "attention_bias": False, "mlp_bias": False}

# f64 that only libdevice computes.
F64 = """
graph.func @step(%x: tensor<8xf64> {graph.name = "x"}) -> (tensor<8xf64> {graph.name = "y"}) {
  %0 = math.exp %x : tensor<8xf64>
  graph.return %0 : tensor<8xf64>
}
graph.entry @run [@step] repeat [1]
"""

# $CUDA_HOME decides alone where the toolkit is.
NO_TOOLKIT = {**os.environ, "CUDA_HOME": "/nonexistent"}


def load_script(name):
    path = tools.TEST_DIR.parent / "scripts" / name
    spec = importlib.util.spec_from_file_location(path.stem.replace("-", "_"), path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


check_ptxas = load_script("check-ptxas.py").check
check_access_widths = load_script("check-access-widths.py").check


class CudaPlans(tools.ToolTest):
    def model(self, config):
        folder = self.folder / config["model_type"]
        folder.mkdir(exist_ok=True)
        (folder / "config.json").write_text(json.dumps(config))
        return folder

    def compile(self, model, *flags, target=("--target", "cuda"), **keywords):
        """The plan, which the checker must accept."""
        plan = self.folder / "x.plan"
        tools.succeed("bowline-compile", model, *target, *tools.ONE_THREAD, *flags, "-o", plan, **keywords)
        self.assertEqual(tools.succeed("bowline-check", plan).decode().splitlines()[-1], "sound")
        return plan

    def kernels(self, plan):
        """The generated kernels."""
        described = json.loads(tools.succeed("bowline-inspect", plan, "--kernels", "--json"))["kernels"]
        return [kernel for kernel in described if kernel["origin"] == "Generated"]

    def refuse(self, says, *arguments, code=1, **keywords):
        done = tools.start("bowline-compile", *arguments, **keywords)
        message = done.stderr.decode()
        self.assertEqual(done.returncode, code, message)
        self.assertEqual(message.count("error:"), 1, message)
        self.assertIn(says, message)
        self.assertEqual(list(self.folder.glob("*.plan*")), [])

    def require_toolkit(self):
        """AdamW needs its functions of f64, and the tests of registers its ptxas."""
        plan = self.compile(tools.MODELS / "llama-tiny", *tools.TRAIN_SHAPES["llama-tiny"], "--optimizer", "sgd")
        if self.kernels(plan)[0]["code"] != "cubin":
            self.skipTest("there is no CUDA toolkit")

    def check_kernels(self, model, *flags, widths=True):
        """Registers by the words of ptxas, and by the code itself; widths of accesses by the addresses of threads."""
        listing = self.folder / "listing"
        plan = self.compile(model, "--kernel-listing", listing, *flags)
        entries, errors = check_ptxas(listing.read_text())
        self.assertEqual(errors, [])
        kernels = self.kernels(plan)
        # Ranks of one stage share an image, and each function is one kernel.
        self.assertEqual(entries, len(kernels))
        self.assertGreater(entries, 4)
        for kernel in kernels:
            with self.subTest(kernel=kernel["name"]):
                self.assertEqual(kernel["code"], "cubin")
                self.assertEqual(kernel["stack_bytes"], 0)
                self.assertIn(kernel["registers"], range(1, 256))
                self.assertLessEqual(kernel["shared_bytes"], 48 * 1024)
                threads, = kernel["grid"]["threads"]
                self.assertLessEqual(threads * kernel["registers"], 64 * 1024)
        if widths:
            self.assertEqual(check_access_widths(listing.read_text(), kernels), (entries, []))

    def test_kernels_of_test_models_stay_in_registers_and_access_widely(self):
        self.require_toolkit()
        for number, (model, shape) in enumerate(tools.TRAIN_SHAPES.items()):
            for dtype in TYPES:
                # An architecture a model, all of them nightly.
                for arch in ARCHITECTURES if tools.NIGHTLY else [ARCHITECTURES[number % 3]]:
                    for mode in (shape, ["--mode", "generate", "--seq", "29"]):
                        with self.subTest(model=model, dtype=dtype, arch=arch, mode=mode):
                            self.check_kernels(tools.MODELS / model, *mode, "--dtype", dtype, "--cuda-arch", arch)

    def test_kernels_of_large_models_stay_in_registers_and_access_widely(self):
        self.require_toolkit()
        for config, shape in ((GPT3, ["--batch", 2, "--seq", 2048]), (LLAMA, ["--batch", 2, "--seq", 8192])):
            for dtype in TYPES:
                for arch in ARCHITECTURES if tools.NIGHTLY else ["sm_90a"]:
                    with self.subTest(model=config["model_type"], dtype=dtype, arch=arch):
                        # Widths are those of the grid, which no architecture changes; to try so many threads takes long.
                        self.check_kernels(self.model(config), *shape, "--dtype", dtype, "--cuda-arch", arch,
                                           widths=arch == "sm_90a")

    def test_listing_names_what_leaves_registers(self):
        """The sentence of ptxas that the tests above look for is there, and a spill in it is found."""
        self.require_toolkit()
        listing = self.folder / "listing"
        self.compile(tools.MODELS / "llama-tiny", *tools.TRAIN_SHAPES["llama-tiny"], "--kernel-listing", listing)
        text = listing.read_text()
        for part in ("// kernel\n", "// threads\n", "; optimised\n", "// PTX\n", "// ptxas\n", ".visible .entry"):
            self.assertIn(part, text)
        spilled = text.replace("0 bytes spill stores", "8 bytes spill stores", 1)
        self.assertEqual(len(check_ptxas(spilled)[1]), 1)

    def test_subnormal_numbers_are_zeros_as_on_processors(self):
        listing = self.folder / "listing"
        self.compile(tools.MODELS / "llama-tiny", *tools.TRAIN_SHAPES["llama-tiny"], "--optimizer", "sgd",
                     "--kernel-listing", listing)
        instructions = set(re.findall(r"^\s+((?:add|sub|mul|fma|div|sqrt|rsqrt|ex2)\.[a-z0-9.]*f32)\b", listing.read_text(), re.M))
        self.assertTrue(any(name.startswith("fma.") for name in instructions), instructions)
        self.assertEqual([name for name in instructions if ".ftz." not in name], [])

    def test_steps_keep_what_is_computed(self):
        for number, (model, shape) in enumerate(tools.TRAIN_SHAPES.items()):
            kinds = ([*shape, "--dtype", "bf16"], ["--mode", "generate", "--seq", "8"], [*shape])
            # A kind a model, all of them nightly.
            for flags in kinds if tools.NIGHTLY else [kinds[number % 3]]:
                with self.subTest(model=model, flags=flags):
                    done = tools.start("bowline-compile", tools.MODELS / model, "--target", "cuda", *flags,
                                       "--verify-each=equiv", "--no-codegen", "-o", self.folder / "x.plan")
                    message = done.stderr.decode()
                    self.assertEqual(done.returncode, 0, message)
                    steps = re.search(r"equivalence: (\d+) steps kept what", message)
                    self.assertGreater(int(steps.group(1)), 5, message)

    def test_ranks(self):
        self.require_toolkit()
        for flags in (["--mesh", "dp=3"], ["--mesh", "tp=2", "--dtype", "bf16"], ["--mesh", "dp=3", "--zero", "3"],
                      ["--mesh", "pp=2", "--microbatches", "3"]):
            with self.subTest(flags=flags):
                self.compile(tools.MODELS / "llama-tiny", *tools.TRAIN_SHAPES["llama-tiny"], *flags)

    # Communicators that a rank uses beside each other, in loops, and in every kind of schedule.
    ORDERED = (
        ("mistral-tiny", ["--mesh", "dp=3", "--zero", "1"]),
        ("llama-tied", ["--mesh", "dp=3", "--zero", "2"]),
        ("qwen2-tiny", ["--mesh", "fsdp=3", "--zero", "3", "--prefetch", "2"]),
        ("llama-tiny", ["--mesh", "dp=3,tp=2", "--zero", "1"]),
        ("llama-tiny", ["--mesh", "dp=3,tp=2", "--zero", "3"]),
        ("qwen3-tiny", ["--mesh", "tp=2", "--overlap-chunks", "2"]),
        ("gpt2-tiny", ["--mesh", "pp=2", "--microbatches", "3", "--schedule", "gpipe"]),
        ("llama-tied", ["--mesh", "pp=2", "--microbatches", "3", "--schedule", "1f1b"]),
        ("llama-tiny", ["--mesh", "pp=2", "--microbatches", "3", "--schedule", "zb_h1"]),
        ("llama-tiny", ["--mesh", "pp=2,tp=2", "--microbatches", "3", "--runs-in-flight", "2"]),
    )

    def facts_of(self, proof, report):
        return int(re.search(rf"^proven +{proof} +(\d+) ", report, re.MULTILINE).group(1))

    def test_communications_follow_one_another(self):
        for model, flags in self.ORDERED:
            with self.subTest(model=model, flags=flags):
                flags = [*tools.TRAIN_SHAPES[model], *flags, "--no-codegen"]
                plan = self.compile(tools.MODELS / model, *flags)
                self.assertGreater(self.facts_of("serial order", tools.succeed("bowline-check", plan).decode()), 1)
                # Devices that replay nothing have no use for it.
                self.compile(tools.MODELS / model, *flags, target=("--target", "discrete"))
                self.assertNotIn("serial order", tools.succeed("bowline-check", plan).decode())

    def test_orders_of_communications_are_needed(self):
        """Without any one of its waits such a plan is refused, by this proof or by another."""
        flags = ["--mesh", "pp=2,tp=2", "--microbatches", "3", "--no-codegen"]
        plan = self.compile(tools.MODELS / "llama-tiny", *tools.TRAIN_SHAPES["llama-tiny"], *flags)
        text, changed = self.folder / "x.mlir", self.folder / "changed.mlir"
        tools.succeed("bowline-translate", "--plan-to-mlir", plan, "-o", text)
        lines = text.read_text().splitlines(keepends=True)
        waits = [i for i, line in enumerate(lines) if line.strip().startswith("plan.wait ")]
        proofs = []
        for i in waits:
            changed.write_text("".join(lines[:i] + lines[i + 1:]))
            tools.succeed("bowline-translate", "--mlir-to-plan", changed, "-o", plan)
            done = tools.start("bowline-check", plan)
            self.assertEqual(done.returncode, 2, lines[i])
            proofs.append(re.search(r"the proof of ([a-z ]+) fails", done.stderr.decode()).group(1))
        self.assertIn("serial order", proofs)
        self.assertLessEqual(set(proofs), {"serial order", "no race", "one stream"})

    def test_plans_survive_as_text_and_every_phase_goes_on(self):
        self.require_toolkit()
        phases = ["input", "graph", "train", "shard", "local", "fuse", "schedule", "codegen", "hoist", "overlap",
                  "memory"]
        flags = [*tools.TRAIN_SHAPES["llama-tiny"], "--target", "cuda", "--cuda-arch", "sm_80"]
        plan = self.compile(tools.MODELS / "llama-tiny", *flags, target=())
        text, again = self.folder / "x.mlir", self.folder / "again.plan"
        tools.succeed("bowline-translate", "--plan-to-mlir", plan, "-o", text)
        flags += tools.ONE_THREAD
        self.assertRegex(text.read_text(), r'plan\.kernel @\S+ symbol "\w+" grid \[\d+, \d+\]')
        tools.succeed("bowline-opt", "--verify-roundtrip", text, "-o", "/dev/null")
        tools.succeed("bowline-translate", "--mlir-to-plan", text, "-o", again)
        self.assertEqual(again.read_bytes(), plan.read_bytes())
        for phase in phases:
            with self.subTest(phase=phase):
                tools.succeed("bowline-compile", tools.MODELS / "llama-tiny", *flags, f"--compile-to={phase}", "-o", text)
                tools.succeed("bowline-compile", text, "--compile-from", phase, *flags[-6:], "-o", again)
                self.assertEqual(again.read_bytes(), plan.read_bytes())
        # It need not be said again.
        tools.succeed("bowline-compile", text, "--compile-from", "memory", "-o", again)
        self.assertEqual(again.read_bytes(), plan.read_bytes())
        for wrong in (["--target", "cpu"], ["--target", "cuda", "--cuda-arch", "sm_90a"]):
            done = tools.start("bowline-compile", text, "--compile-from", "memory", *wrong, "-o", self.folder / "no.plan")
            self.assertEqual(done.returncode, 1)
            self.assertIn("compiled with --target cuda --cuda-arch sm_80 up to here", done.stderr.decode())

    def test_places_are_what_libraries_of_cuda_want(self):
        self.require_toolkit()
        plan = self.compile(tools.MODELS / "gpt2-tiny", *tools.TRAIN_SHAPES["gpt2-tiny"], "--microbatches", 3)
        described = json.loads(tools.succeed("bowline-inspect", plan, "--json"))
        self.assertEqual(described["header"]["target"], "cuda nvptx64 sm_90a")
        self.assertEqual({buffer["offset"] % 256 for buffer in described["buffers"]}, {0})

    def test_without_a_toolkit_plans_hold_ptx(self):
        for arch, flags in (("sm_80", ["--mode", "generate", "--seq", "29"]),
                            ("sm_90a", [*tools.TRAIN_SHAPES["llama-tiny"], "--optimizer", "sgd"]),
                            ("sm_100", ["--mode", "generate", "--seq", "29", "--dtype", "bf16"])):
            with self.subTest(arch=arch):
                plan = self.folder / "x.plan"
                done = tools.start("bowline-compile", tools.MODELS / "llama-tiny", *flags, "--target", "cuda",
                                   "--cuda-arch", arch, "-o", plan, env=NO_TOOLKIT)
                self.assertEqual((done.returncode, done.stderr), (0, b""))
                self.assertEqual({kernel["code"] for kernel in self.kernels(plan)}, {"ptx"})
                content = plan.read_bytes()
                self.assertIn(f".target {arch}".encode(), content)
                self.assertEqual(tools.succeed("bowline-check", plan).decode().splitlines()[-1], "sound")

    def test_functions_of_f64_need_the_toolkit(self):
        program = self.folder / "f64.mlir"
        program.write_text(F64)
        # AdamW's powers of its decays are of f64.
        for name, model, flags in (("exp", program, ["--mode", "generate"]),
                                   ("pow", tools.MODELS / "llama-tiny", tools.TRAIN_SHAPES["llama-tiny"])):
            self.refuse(f"the kernels need {name} of f64, which comes with the CUDA toolkit; install it, or set CUDA_HOME to "
                        "where it is", model, *flags, "--target", "cuda", "-o", self.folder / "x.plan", code=3,
                        env=NO_TOOLKIT)

    def test_errors_of_the_toolkit(self):
        toolkit, elsewhere = self.folder / "toolkit", self.folder / "elsewhere"
        (toolkit / "bin").mkdir(parents=True)
        elsewhere.mkdir()
        ptxas = toolkit / "bin" / "ptxas"
        output = 'while [ "$1" != -o ]; do shift; done; '
        model = (tools.MODELS / "llama-tiny", "--mode", "generate", "--seq", 8, "--target", "cuda")
        for script, says in (("exit 5", "could not assemble the generated kernels: exit code 5\n"),
                             ("echo no memory; exit 5", "the generated kernels: exit code 5: no memory\n"),
                             ("kill -9 $$", "could not assemble the generated kernels: Killed\n"),
                             ("exit 0", "ended well, but wrote nothing; set CUDA_HOME to a toolkit whose ptxas works"),
                             (output + 'echo text > "$2"', "ended well, but wrote something else than machine code"),
                             (output + 'rm "$2"', "cannot read the output of "),
                             (None, "could not assemble the generated kernels: ")):
            with self.subTest(script=script):
                # Without its first line it is nothing that can be executed.
                ptxas.write_text("nonsense" if script is None else f"#!/bin/sh\n{script}\n")
                ptxas.chmod(0o755)
                self.refuse(says, *model, "-o", self.folder / "x.plan", code=3,
                            env={**os.environ, "CUDA_HOME": str(toolkit), "TMPDIR": str(elsewhere)})
                self.assertEqual(list(elsewhere.iterdir()), [])
        missing = self.folder / "missing"
        self.refuse(f"cannot make a temporary file for ptxas in {missing}: No such file or directory; set TMPDIR to a folder",
                    *model, "-o", self.folder / "x.plan", code=3,
                    env={**os.environ, "CUDA_HOME": str(toolkit), "TMPDIR": str(missing)})

    def test_functions_of_f64_are_linked(self):
        self.require_toolkit()
        program = self.folder / "f64.mlir"
        program.write_text(F64)
        listing, plan = self.folder / "listing", self.folder / "f64.plan"
        tools.succeed("bowline-compile", program, "--mode", "generate", "--target", "cuda", "--kernel-listing", listing,
                      "-o", plan)
        # Linked, and nothing of the library is left to be called.
        self.assertNotIn("__nv_exp", listing.read_text().split("// PTX\n")[1])
        self.assertEqual(check_ptxas(listing.read_text()), (1, []))

    def test_flags(self):
        model, plan = tools.MODELS / "llama-tiny", self.folder / "x.plan"
        flags = [*tools.TRAIN_SHAPES["llama-tiny"], "-o", plan]
        self.refuse("--target: rocm not in {cpu,cuda,discrete}", model, *flags, "--target", "rocm")
        self.refuse("--cuda-arch: sm_70 not in {sm_80,sm_90a,sm_100}", model, *flags, "--target", "cuda", "--cuda-arch", "sm_70")
        self.refuse("--cuda-arch is a flag of --target cuda and not of --target cpu; leave it out", model, *flags, "--cuda-arch",
                    "sm_80")
        self.refuse("--kernel-listing has nothing to list: leave out --no-codegen", model, *flags, "--no-codegen",
                    "--kernel-listing", self.folder / "listing")
        self.refuse("--kernel-listing has nothing to list: no code is generated before the phase codegen", model,
                    *tools.TRAIN_SHAPES["llama-tiny"], "--compile-to", "fuse", "--kernel-listing", self.folder / "listing")
        (self.folder / "link").symlink_to("x.plan")
        for spelling in (plan, f"{self.folder}/./x.plan", self.folder / ".." / self.folder.name / "x.plan",
                         os.path.relpath(plan), self.folder / "link"):
            self.refuse("--kernel-listing and -o name the same file", model, *flags, "--kernel-listing", spelling)
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["link"])
        self.refuse("--disable-step fuse-epilogues is no step that may be left out", model, *flags, "--target", "cuda",
                    "--disable-step", "fuse-epilogues")
        self.refuse("--disable-step align-products is no step that may be left out", model, *flags, "--disable-step",
                    "align-products")

    def test_listing_of_code_for_processors(self):
        listing = self.folder / "listing"
        self.compile(tools.MODELS / "llama-tiny", *tools.TRAIN_SHAPES["llama-tiny"], "--kernel-listing", listing, target=())
        self.assertIn("// loops\n", listing.read_text())

    def test_nobody_runs_them_without_a_card(self):
        self.require_toolkit()
        plan = self.compile(tools.MODELS / "llama-tiny", *tools.TRAIN_SHAPES["llama-tiny"])
        done = tools.start("bowline-run", plan, "--data", tools.TOKENS, "--steps", 2, "--driver", "cpu")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(done.stderr.decode().count("\n"), 1)
        self.assertIn("cuda", done.stderr.decode())


if __name__ == "__main__":
    tools.main()
