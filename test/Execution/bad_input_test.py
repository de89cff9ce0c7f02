#!/usr/bin/env python3
"""Bad input ends in one clear message, the documented exit code and no partial file."""

import json
import os
import re
import shutil
import struct

import tools

MODEL = "llama-tiny"
WEIGHTS = tools.MODELS / MODEL / "model.safetensors"
CONFIG = tools.MODELS / MODEL / "config.json"


def safetensors(header, payload):
    """A file with this header: text, or an object that is written as JSON."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + payload


def header_of(file):
    data = file.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8:8 + size]), data[8 + size:]


class BadInput(tools.ToolTest):
    def tree(self):
        """Every file below the test's folder, with its content, but for the process that locked a folder last."""
        return {path: path.read_bytes() if path.is_file() else None for path in sorted(self.folder.rglob("*"))
                if path.name != ".lock"}

    def refuse(self, says, name, *arguments, code=1, **keywords):
        """The tool must end with `code` and a message that holds all of `says`, and leave no trace."""
        before = self.tree()
        with self.subTest(arguments=" ".join(map(str, arguments)), says=says):
            done = tools.start(name, *arguments, **keywords)
            message = done.stderr.decode()
            self.assertEqual(done.returncode, code, message)
            self.assertEqual(done.stdout, b"")
            self.assertEqual(message.count("error:"), 1, message)
            self.assertTrue(message.startswith(f"{name}: error: "), message)
            for word in says if isinstance(says, tuple) else (says,):
                self.assertIn(word, message)
            for noise in ("Stack dump", "PLEASE submit", "terminate called", "see current operation", "Assertion"):
                self.assertNotIn(noise, message)
            self.assertEqual(self.tree(), before)

    def model(self, name, config=None, weights=None):
        """A model directory; `config` changes keys of config.json or is its text."""
        folder = self.folder / name
        folder.mkdir()
        if isinstance(config, str):
            (folder / "config.json").write_text(config)
        elif config is not None:
            text = json.dumps({**json.loads(CONFIG.read_text()), **config})
            (folder / "config.json").write_text(text)
        if weights is not None:
            (folder / "model.safetensors").write_bytes(weights)
        return folder

    def refuse_model(self, says, folder):
        self.refuse(says, "bowline-compile", folder, "--batch", 2, "--seq", 5, "-o", self.folder / "x.plan")

    def test_configurations(self):
        text = CONFIG.read_text()
        self.refuse_model(("none/config.json", "No such file"), self.folder / "none")
        self.refuse_model(("empty/config.json", "No such file"), self.model("empty"))
        self.refuse_model(("cut/config.json", "JSON"), self.model("cut", text[:len(text) // 2]))
        self.refuse_model(("blank/config.json", "JSON"), self.model("blank", ""))
        self.refuse_model(("model_type", "mamba", "llama"), self.model("type", {"model_type": "mamba"}))
        self.refuse_model(("num_key_value_heads", "6", "4"), self.model("groups", {"num_key_value_heads": 4}))
        no_head_dim = json.loads(text)
        del no_head_dim["head_dim"]
        self.refuse_model("num_attention_heads",
                          self.model("heads", json.dumps({**no_head_dim, "num_attention_heads": 7})))
        self.refuse_model("rope_scaling", self.model("rope", {"rope_scaling": {"rope_type": "yarn", "factor": 2.0}}))
        self.refuse_model("hidden_size", self.model("text", {"hidden_size": "wide"}))
        letters = json.loads(text)
        letters["rms_norm_esp"] = letters.pop("rms_norm_eps")
        self.refuse_model(('rms_norm_esp', 'is "rms_norm_eps" meant?'), self.model("letters", json.dumps(letters)))
        self.refuse_model(("config.json' is a file; give the directory that has config.json", f"'{tools.MODELS / MODEL}'"),
                          tools.MODELS / MODEL / "config.json")
        (self.folder / "around" / "step-2").mkdir(parents=True)
        shutil.copytree(tools.MODELS / MODEL, self.folder / "around" / "step-4")
        self.refuse_model(("around' has no config.json, but", "around/step-4' in it has"), self.folder / "around")

    def test_weights(self):
        whole = WEIGHTS.read_bytes()
        header, payload = header_of(WEIGHTS)
        self.refuse_model(("model.safetensors", "gate_proj", "53", "54"),
                          self.model("shape", {"intermediate_size": 54}, whole))
        self.refuse_model("model.safetensors", self.model("truncated", {}, whole[:-100]))
        self.refuse_model("model.safetensors", self.model("five-bytes", {}, whole[:5]))
        self.refuse_model("model.safetensors", self.model("oversized", {}, struct.pack("<Q", 1 << 60) + whole[8:]))
        names = [name for name in header if name != "__metadata__"]
        first, second = sorted(names, key=lambda name: header[name]["data_offsets"])[:2]
        overlapping = json.loads(json.dumps(header))
        size = header[second]["data_offsets"][1] - header[second]["data_offsets"][0]
        overlapping[second]["data_offsets"] = [0, size]
        self.refuse_model(("model.safetensors", "overlap"), self.model("overlap", {}, safetensors(overlapping, payload)))
        missing = {name: value for name, value in header.items() if name != "model.norm.weight"}
        folder = self.model("missing", {}, safetensors(missing, payload))
        self.refuse_model("model.safetensors", folder)
        # The same files given to a run.
        plan = self.folder / "x.plan"
        tools.compile_train(MODEL, plan)
        for name in ("truncated", "five-bytes", "oversized", "overlap", "missing"):
            self.refuse("model.safetensors", "bowline-run", plan, "--data", tools.TOKENS, "--steps", 2, "--weights",
                        self.folder / name, "--metrics", self.folder / "m.jsonl", "--save", self.folder / "s")
        self.refuse("do not fit", "bowline-run", plan, "--data", tools.TOKENS, "--steps", 2, "--weights",
                    tools.MODELS / "qwen2-tiny", "--metrics", self.folder / "m.jsonl")

    def test_compile_flags(self):
        model, out = tools.MODELS / MODEL, ["-o", self.folder / "x.plan"]
        sizes = ["--batch", 3, "--seq", 5]
        compile_ = "bowline-compile"
        self.refuse("MODEL is required", compile_)
        self.refuse("-o is missing", compile_, model, *sizes)
        self.refuse("--seq", compile_, model, "--batch", 3, *out)
        self.refuse("--batch", compile_, model, "--seq", 5, *out)
        self.refuse("--batch", compile_, model, "--batch", -1, "--seq", 5, *out)
        self.refuse(("--batch 3", "the 2 microbatches", "use --microbatches 1 or 3, or --batch 2 or 4"), compile_, model, *sizes, "--microbatches", 2, *out)
        self.refuse(("400", "64"), compile_, model, "--batch", 1, "--seq", 400, *out)
        self.refuse("not supported", compile_, model, "--batch", 10**12, "--seq", 20, *out)
        self.refuse("--mode", compile_, model, *sizes, "--mode", "sing", *out)
        self.refuse("--dtype", compile_, model, *sizes, "--dtype", "f64", *out)
        self.refuse("--lr", compile_, model, *sizes, "--lr", "fast", *out)
        self.refuse("--decay-steps", compile_, model, *sizes, "--lr-schedule", "cosine", *out)
        self.refuse("--nonsense", compile_, model, *sizes, "--nonsense", *out)
        self.refuse(("--disable-step", "merge-fusions"), compile_, model, *sizes, "--disable-step", "everything", *out)
        self.refuse("512MiB", compile_, model, *sizes, "--memory-limit", "much", *out)
        self.refuse(("--memory-limit 64KiB", "largest buffers", "model.embed_tokens.weight"), compile_, model, *sizes,
                    "--memory-limit", "64KiB", *out)
        # Sizes that the limit does not let through are not advised.
        refused = ("--batch 3 must be a multiple of 18", "; use --microbatches 1\n")
        self.refuse(refused, compile_, model, "--batch", 3, "--seq", 16, "--mesh", "fsdp=3", "--microbatches", 6,
                    "--memory-limit", "700KiB", "--target-cpu", "x86-64-v3", *out)
        self.refuse("none/x.plan", compile_, model, *sizes, "-o", self.folder / "none" / "x.plan")
        self.refuse("/proc/x.plan", compile_, model, *sizes, "-o", "/proc/x.plan")
        self.refuse("--compile-from", compile_, model, *sizes, "--compile-from", "train", *out)
        # A full disk: a limit of 8 blocks of 1024 bytes stands for it. It hits the file that is asked for, or the linker's
        # input, which is memory: this limit counts that as well.
        self.refuse("x.mlir", compile_, model, *sizes, "--compile-to=train", "-o", self.folder / "x.mlir", code=3,
                    before="ulimit -f 8")
        self.refuse(("memory file 'kernels.a'", "raise the file size limit"), compile_, model, *sizes, *out, code=3,
                    before="ulimit -f 8")

    def test_flags_of_the_other_mode(self):
        values = {"--batch": 2, "--microbatches": 1, "--zero": 0, "--zero-axis": "dp", "--prefetch": 1, "--zero-once": None,
                  "--zero-each": None,
                  "--schedule": "1f1b",
                  "--stages": "balanced", "--recompute": "none", "--bucket-bytes": "25MiB", "--optimizer": "adamw",
                  "--lr": 0.001, "--beta1": 0.9, "--beta2": 0.95, "--eps": 1e-8, "--weight-decay": 0.1, "--clip-norm": 1,
                  "--lr-schedule": "constant", "--warmup-steps": 0, "--decay-steps": 9, "--min-lr": 0,
                  "--runs-in-flight": 1, "--buckets": 1, "--max-batch": 64, "--max-context": 8, "--block-tokens": 16,
                  "--kv-blocks": 9, "--kv-memory": "1GiB", "--kv-dtype": "f32", "--with-logits": None,
                  "--weights-dtype": "as-stored"}
        sizes = {"train": ["--seq", 8, "--batch", 2], "generate": ["--seq", 8], "serve": []}
        described = re.split(r"\n  (?=-)", tools.succeed("bowline-compile", "--help").decode().split("\n\nPhases:")[0])
        modes = {text.split()[0]: text.split()[-1][1:-1] for text in described if text.endswith(("(train)", "(serve)"))}
        self.assertEqual(modes.keys(), values.keys())
        for flag, mode in modes.items():
            for other in sizes.keys() - {mode}:
                # The default value is refused too: the user meant the flag to have an effect.
                self.refuse((f"{flag} has no effect with --mode {other}", f"add --mode {mode}"), "bowline-compile",
                            tools.MODELS / MODEL, *sizes[other], "--mode", other, flag,
                            *filter(lambda value: value is not None, [values[flag]]), "-o", self.folder / "x.plan")
        self.refuse(("--map-weights", "add --mode generate or serve"), "bowline-compile", tools.MODELS / MODEL,
                    *sizes["train"], "--map-weights", "-o", self.folder / "x.plan")

    def test_flags_without_effect(self):
        def refuse(says, *flags):
            self.refuse(says, "bowline-compile", tools.MODELS / MODEL, "--seq", 8, "--batch", 2, *flags, "-o",
                        self.folder / "x.plan")

        for flag in ("--report", "--runs-in-flight=2"):
            refuse((f"{flag.split('=')[0]} has no effect with --compile-to=memory", "go on to the plan"), flag,
                   "--compile-to=memory")
        for flag in ("--decay-steps", "--min-lr"):
            refuse((f"{flag} has no effect without --lr-schedule cosine", "add that"), flag, 9)
        for flag in ("--beta1", "--beta2", "--eps", "--weight-decay"):
            refuse((f"{flag} has no effect with --optimizer sgd", "use adamw"), "--optimizer", "sgd", flag, 0.5)
        refuse(("--link is about several ranks, and there is one", "add --mesh"), "--link", "bandwidth=1GB/s")

    def test_numbers_out_of_range(self):
        """No number is taken for another one because it does not fit."""
        flags = ["bowline-compile", tools.MODELS / MODEL, "--batch", 4, "--seq", 5, "-o", self.folder / "x.plan"]
        huge = "99999999999999999999999"
        for value in (2**32 + 1, 99999999999, 4097, -1):
            self.refuse(("--threads must be 0 to 4096", str(value)), *flags, "--threads", value)
        for flag in ("--threads", "--seed", "--microbatches", "--warmup-steps", "--decay-steps", "--prefetch"):
            for value in (huge, "1.5", "nan"):
                self.refuse((flag, "whole number of 64 bits"), *flags, f"{flag}={value}")
            self.refuse((flag, "missing"), *flags, f"{flag}=")
        self.refuse(("--seed", "-1"), *flags, "--seed=-1")
        for flag in ("--batch", "--seq"):
            self.refuse((flag, "whole number of 64 bits"), *flags[:2], f"{flag}={huge}", *flags[-2:])
        schedule = ["--lr-schedule", "cosine", "--decay-steps", 9]
        self.refuse(("--min-lr 0.1", "above --lr 0.01"), *flags, *schedule, "--lr", "0.01", "--min-lr", "0.1")
        for flag in ("--lr", "--eps", "--weight-decay", "--clip-norm", "--min-lr"):
            for value in ("inf", "nan", "1e999"):
                self.refuse((flag, "finite"), *flags, flag, value)
        # Steps compute in f32, where they would divide by 0 or a subnormal number, or where the value is infinite.
        for value in ("0", "1e-50", "1e-39"):
            self.refuse(("--eps must be at least 1.17549e-38", "use 1e-8"), *flags, "--eps", value)
        self.refuse(("--eps must be from 1.17549e-38 to 3.40282e+38", "use 1e-8"), *flags, "--eps", "1e40")
        for flag in ("--beta1", "--beta2"):
            for value in ("1", "0.99999999999"):
                self.refuse((f"{flag} must be at least 0 and less than 1 in f32",), *flags, flag, value)
        self.refuse(("--clip-norm 1e-60 is 0 in f32", "0 for no clipping"), *flags, "--clip-norm", "1e-60")
        for flag in ("--lr", "--eps", "--weight-decay", "--clip-norm"):
            self.refuse((flag, "the largest f32"), *flags, flag, "1e300")
        for value in ("0.5", "0.1B", "0", "0.0009kB", "2000000TB", huge):
            self.refuse("is not 1 to 10^18 bytes", *flags, "--memory-limit", value)
        self.refuse(("--microbatches 1048577", "1048576"), *flags[:2], "--batch", 1048577, *flags[4:], "--microbatches",
                    1048577)
        many = self.folder / "many.mlir"
        many.write_text('dist.strategy @s {\n  microbatches 4611686018427387904\n}\n')
        self.refuse(("'microbatches 4611686018427387904'", "1048576"), *flags, "--strategy", many)

    def test_outputs(self):
        model, sizes = tools.MODELS / MODEL, ["--batch", 2, "--seq", 5, "--threads", 1]
        self.refuse(("-o -", "standard output"), "bowline-compile", model, *sizes, "-o", "-")
        compiled = self.folder / "codegen.mlir"
        tools.succeed("bowline-compile", model, *sizes, "--compile-to=codegen", "-o", compiled)
        self.refuse(("--kernel-listing: the program of", "past phase 'codegen'"), "bowline-compile", compiled,
                    "--compile-from=codegen", "--threads", 1, "--kernel-listing", self.folder / "k", "-o",
                    self.folder / "x.plan")
        text = compiled.read_text()
        for said, instead, says in (('plan.seed = 0 : i64', 'plan.seed = "x"', ("plan.seed", "it must be an i64")),
                                    ('cpu = "', 'cpu = "x86-64-v9', ('cpu = "x86-64-v9', "use one of x86-64-v"))):
            self.assertIn(said, text)
            (self.folder / "edited.mlir").write_text(text.replace(said, instead, 1))
            self.refuse(says, "bowline-compile", self.folder / "edited.mlir", "--compile-from=codegen", "--threads", 1,
                        "-o", self.folder / "x.plan")
        # A refused compilation leaves no listing behind.
        self.refuse("--memory-limit 64KiB", "bowline-compile", model, *sizes, "--memory-limit", "64KiB",
                    "--kernel-listing", self.folder / "k", "-o", self.folder / "x.plan")
        tools.succeed("bowline-compile", compiled, "--compile-from=codegen", "--compile-to=memory", "--threads", 1, "-o",
                      self.folder / "memory.mlir")
        self.refuse(("-o -", "standard output"), "bowline-translate", "--mlir-to-plan", self.folder / "memory.mlir",
                    "-o", "-")

    def test_git_lfs_pointers(self):
        """A file that `git clone` left as a pointer is named as such by everything that opens it."""
        pointer = (b"version https://git-lfs.github.com/spec/v1\n"
                   b"oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 168696\n")

        def place(name):
            path = self.folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(pointer)
            return path

        def refuse(path, name, *arguments):
            self.refuse((f"'{path}' is a Git LFS pointer, not the file itself", "run `git lfs pull`"), name, *arguments)

        plan, model = self.folder / "x.plan", self.model("model", {})
        sizes, out = ["--batch", 2, "--seq", 5], ["-o", self.folder / "y.plan"]
        tools.compile_train(MODEL, plan)
        run = ["bowline-run", plan, "--steps", 1]
        weights = place("model/model.safetensors")
        refuse(weights, "bowline-compile", model, *sizes, *out)
        refuse(weights, *run, "--data", tools.TOKENS, "--weights", model)
        weights.unlink()
        index = place("model/model.safetensors.index.json")
        refuse(index, "bowline-compile", model, *sizes, *out)
        index.write_text('{"weight_map": {"lm_head.weight": "1.safetensors"}}')
        refuse(place("model/1.safetensors"), "bowline-compile", model, *sizes, *out)
        index.unlink()
        refuse(place("model/config.json"), "bowline-compile", model, *sizes, *out)
        text = self.folder / "x.txt"
        text.write_text("text\n")
        tokenize = ["bowline-data", "tokenize", "--output", self.folder / "x.bin", "--tokenizer"]
        refuse(place("tokenizer.model"), *tokenize, self.folder / "tokenizer.model", text)
        self.refuse(("is no tokenizer; give the directory that has its tokenizer.json", "x.txt"), *tokenize, text, text)
        refuse(place("x.gguf"), "bowline-compile", self.folder / "x.gguf", "--mode", "serve", *out)
        refuse(place("x.mlir"), "bowline-compile", self.folder / "x.mlir", *out)
        refuse(self.folder / "x.mlir", "bowline-translate", "--mlir-to-plan", self.folder / "x.mlir", *out)
        for how in ([], ["--verify-each=equiv"], ["--interpret=f"]):
            refuse(self.folder / "x.mlir", "bowline-opt", self.folder / "x.mlir", *how)
        refuse(place("one.safetensors"), *run, "--data", tools.TOKENS, "--weights", self.folder / "one.safetensors")
        refuse(place("s.mlir"), "bowline-compile", tools.MODELS / MODEL, *sizes, "--strategy", self.folder / "s.mlir", *out)
        refuse(place("text.txt"), "bowline-data", "tokenize", self.folder / "text.txt", "--tokenizer", "bytes",
               "-o", self.folder / "y.bin")
        for name in ("tokens.bin", "tokens.npy", "tokens.idx"):
            refuse(place(name), *run, "--data", self.folder / name)
        # Megatron's .idx file describes the tokens of its .bin file.
        place("megatron.idx")
        (self.folder / "megatron.bin").write_bytes(bytes(4000))
        for name in ("megatron", "megatron.bin"):
            refuse(self.folder / "megatron.idx", *run, "--data", self.folder / name)
        refuse(place("tokenizer/tokenizer.json"), "bowline-data", "tokenize", CONFIG, "--tokenizer",
               self.folder / "tokenizer", *out)
        refuse(place("p.plan"), "bowline-run", self.folder / "p.plan", "--data", tools.TOKENS, "--steps", 1)

    def test_unknown_flags_and_commands(self):
        for wrong, nearest, command in (
                ("--batchh", "--batch", ("bowline-compile", tools.MODELS / MODEL, "--batchh", 4, "--seq", 5)),
                ("--batchh", "--batch", ("bowline-compile", "--batchh=4")),
                ("--micro", "--microbatches", ("bowline-compile", "--micro", 2, tools.MODELS / MODEL)),
                ("--codegen", "--no-codegen", ("bowline-compile", "--codegen")),
                ("--target-cpuu", "--target-cpu", ("bowline-compile", "--target-cpuu", "x86-64-v3")),
                ("--sav", "--save", ("bowline-run", "x.plan", "--sav", "here")),
                ("--prot", "--port", ("bowline-serve", "x.plan", "--prot", 80)),
                ("--jsn", "--json", ("bowline-check", "x.plan", "--jsn")),
                ("--memroy", "--memory", ("bowline-inspect", "--memroy")),
                ("--plan-to-mlri", "--plan-to-mlir", ("bowline-translate", "--plan-to-mlri", "x.plan")),
                ("--tokeniser", "--tokenizer", ("bowline-data", "tokenize", "x", "--tokeniser", "bytes"))):
            self.refuse(f"unknown flag '{wrong}'; the nearest one is '{nearest}'\n", *command)
        self.refuse("use --seq 29, with --batch 8\n", "bowline-compile", tools.MODELS / "gpt2-tiny", "--batch", 6, "--seq", 30,
                    "--mesh", "tp=1,fsdp=8", "-o", self.folder / "x.plan")
        for theirs, ours in (("--learning-rate", "--lr"), ("--batch_size", "--batch"), ("--seq-length=2", "--seq")):
            self.refuse(f"unknown flag '{theirs.partition('=')[0]}'; its name here is '{ours}'\n", "bowline-compile", theirs, 1)
        for tool, wrong, says in (("run", "--batch", "it is a flag of bowline-compile: compile the plan with it"),
                                  ("run", "--mesh=dp=2", "it is a flag of bowline-compile: compile the plan with it"),
                                  ("serve", "--zero", "it is a flag of bowline-compile: compile the plan with it"),
                                  ("compile", "--save", "it is a flag of bowline-run: give it when the plan runs")):
            self.refuse(f"unknown flag '{wrong.partition('=')[0]}'; {says}\n", f"bowline-{tool}", "x.plan", wrong, 1)
        for wrong in ("--checkpoint", "--mesh-axes", "--xyzzy"):
            self.refuse(f"unknown flag '{wrong}'; --help lists all\n", "bowline-compile", wrong, 1)
        self.refuse("unknown command 'tokenise'; the nearest one is 'tokenize'", "bowline-data", "tokenise", "x")
        self.refuse("--verify=placement compares programs before phase 'shard' and after phase 'local'", "bowline-compile",
                    tools.MODELS / "llama-tiny", "--batch", 2, "--seq", 8, "--verify=placement", "--compile-to=graph")
        # LLVM's library reads these flags and corrects misspelled ones itself.
        done = tools.start("bowline-opt", "--mlir-timming")
        self.assertIn(b"Did you mean '--mlir-timing'?", done.stderr)
        self.assertEqual(done.returncode, 1)

    def test_a_pass_that_changes_the_program_fails_a_check(self):
        program = self.folder / "x.mlir"
        program.write_text("graph.func @step(%x: tensor<3xf32>) -> tensor<3xf32> {\n  graph.return %x : tensor<3xf32>\n}\n"
                           'graph.entry @run [@step] repeat [1] {sym_visibility = "private"}\n')
        verified = ["bowline-opt", program, "--verify-each=equiv"]
        tools.succeed(*verified, "--cse")
        done = tools.start(*verified, "--symbol-dce")
        self.assertIn(b"step 'symbol-dce' removes entry @run", done.stderr)
        self.assertEqual(done.returncode, 2)
        # Programs that the checker cannot compare end with another exit code.
        program.write_text("graph.func @f(%x: tensor<3xf32>) -> tensor<3xf32> {\n"
                           "  %0 = arith.constant dense<0x7FC00000> : tensor<3xf32>\n  graph.return %0 : tensor<3xf32>\n}\n")
        done = tools.start(*verified, "--cse")
        self.assertIn(b"computes NaN, in f64", done.stderr)
        self.assertEqual(done.returncode, 1)

    def test_compilation_needs_no_temporary_files(self):
        plan = self.folder / "x.plan"
        tools.succeed("bowline-compile", tools.MODELS / MODEL, "--batch", 3, "--seq", 5, "-o", plan,
                      env={**os.environ, "TMPDIR": str(self.folder / "none")})
        self.assertEqual(list(self.tree()), [plan])

    def test_strategies(self):
        def file(name, text):
            path = self.folder / name
            path.write_text(text)
            return path

        def refuse(says, *flags):
            self.refuse(says, "bowline-compile", tools.MODELS / MODEL, "--batch", 6, "--seq", 8, *flags,
                        "-o", self.folder / "x.plan")

        for flag in ("--lr", "--beta1", "--beta2", "--eps", "--weight-decay", "--clip-norm", "--min-lr"):
            refuse(flag, flag, "nan")

        # Axes and sizes.
        refuse(("--mesh dp=2,ep=2: ", "axis 'ep', which nothing uses", "axes named 'pp', 'fsdp', 'tp' have a use by themselves"), "--mesh", "dp=2,ep=2")
        refuse(("--mesh dp=0: ", "nearest valid one is 1"), "--mesh", "dp=0")
        refuse(("--mesh dp=: ", "NAME=SIZE"), "--mesh", "dp=")
        refuse('axis "dp" is named twice', "--mesh", "dp=2,dp=3")
        refuse(("--zero 1: ", 'axis "fsdp"', 'nearest is "dp"'), "--mesh", "dp=2", "--zero", 1, "--zero-axis", "fsdp")
        refuse(("--sequence-parallel: ", 'no axis "tp"', "--mesh tp=N"), "--mesh", "dp=2", "--sequence-parallel")
        refuse(("--zero 1: ", "add a mesh of N ranks, --mesh dp=N"), "--zero", 1)
        refuse(("--batch 6 does not divide over the 4 ranks along \"dp\"", "use --batch 4 or 8"), "--mesh", "dp=4")
        # Patterns and axes of a file.
        mesh = 'mesh @m ["dp", "tp"] [3, 2]\n'
        for line, says in (
                ('shard "layers.*.mlp.w_upp" as <[{"tp"}, {}]>',
                 ('s.mlir:3:1: pattern "layers.*.mlp.w_upp" matches no parameter', "nearest is 'layers.0.mlp.w_up'")),
                ('shard "layers.*.mlp.w_up" as <[{"tpp"}, {}]>', ('s.mlir:3:1:', 'axis "tpp"', 'nearest is "tp"')),
                ('batch "ddp"', ("s.mlir:3:1:", "ddp", "dp")),
                ('schedule "1f1b" microbatches 4', ("s.mlir:3:17: ", "says otherwise than --microbatches 2"))):
            refuse(says, "--strategy", file("s.mlir", "dist.strategy @s {\n" + mesh + line + "\n}\n"),
                   "--microbatches", 2)
        # Lines that a first user may write. Where the parser refuses one, the message says how the line is written.
        for line, says in (
                ("batch dp", ("s.mlir:3:7: ", "a line 'batch' reads 'batch \"dp\"'")),
                ("zero 3", ("s.mlir:3:6: ", "'zero level 3 axis \"dp\" prefetch 2 once'")),
                ("zero level 3 axis dp", ("s.mlir:3:18: ", "a line 'zero' reads")),
                ("microbatches = 3", ("s.mlir:3:13: ", "'microbatches 8'")),
                ("sequence_parallel", ("s.mlir:", "'sequence_parallel \"tp\"'")),
                ("overlap_chunks", ("s.mlir:4:1: ", "'overlap_chunks 4', or 'overlap_chunks auto'")),
                ('bucket_bytes "4MiB"', ("s.mlir:3:14: ", "'bucket_bytes 4194304'")),
                ('shard "lm_head.weight" [{"tp"}, {}]', ("s.mlir:3:24: ", 'as <[{}, {"tp"}]>')),
                ('recomputes "full"', ("s.mlir:3:1: ", "the nearest is 'recompute'")),
                ('dtype "bf16"', ("s.mlir:3:1: ", "the lines of a strategy are batch, bucket_bytes, mesh")),
                ('stages "[0],[1]"', ("s.mlir:3:1: ", 'names axis "[0],[1]"', 'nearest is "dp"')),
                ('tensor_parallel "dp"', ("s.mlir:2:1: ", "axis 'tp'", "a line of the strategy gives its usual part to another axis")),
                ('schedule "none.csv"', ("s.mlir:3:1: ", "cannot open", "none.csv")),
                ('recompute "full" {layers = "0"}', ("s.mlir:3:18: ", "attribute 'layers' in braces", "remove it",
                                                     "a line 'recompute' reads 'recompute \"selective\"'")),
                ('"dist.microbatches"() <{count = 3 : i64}> {foo = 1} : () -> ()',
                 ("s.mlir:3:1: ", "attribute 'foo', which nothing reads", "its attributes are count"))):
            refuse(says, "--strategy", file("s.mlir", "dist.strategy @s {\n" + mesh + line + "\n}\n"))
        for text, says in (
                ("", "has 0 dist.strategy operations; it must have one, as in dist.strategy @name {"),
                (mesh, "a file reads 'dist.strategy @name { mesh"),
                ('{"mesh": {"dp": 2}}', "a file reads 'dist.strategy @name { mesh"),
                ("strategy @s {\n" + mesh + "}", "a file reads 'dist.strategy @name { mesh"),
                ("dist.strategy @s {\n" + mesh, "a file reads 'dist.strategy @name { mesh"),
                ("dist.strategy @s {\n mesh dp=2\n}", ("s.mlir:2:7: ", 'reads \'mesh @mesh ["dp", "tp"] [2, 4]\'')),
                ("dist." + mesh + "dist.strategy @s {\n" + mesh + "}", ("s.mlir:1:1: ", "outside of the strategy"))):
            refuse(says, "--strategy", file("s.mlir", text))
        refuse(("nowhere.mlir", "No such file"), "--strategy", self.folder / "nowhere.mlir")
        for flag in ("--strategy", "--mesh", "--stages", "--schedule", "--bucket-bytes", "--overlap-chunks"):
            refuse((flag, "is empty"), flag, "")
        refuse(("--mesh dp:2: ", "for instance 'dp=N'"), "--mesh", "dp:2")
        # Where nothing could take effect.
        def generate(says, *flags):
            self.refuse(says, "bowline-compile", tools.MODELS / MODEL, "--mode", "generate", "--seq", 8, *flags,
                        "-o", self.folder / "x.plan")

        generate(("--mesh pp=2: ", "--mode generate makes none"), "--mesh", "pp=2")
        for line in ("microbatches 2", 'recompute "full"', "bucket_bytes 4096"):
            generate(("s.mlir:3:1: ", "--mode generate has not"), "--strategy",
                     file("s.mlir", 'dist.strategy @s {\nmesh @m ["tp"] [2]\n' + line + "\n}\n"))
        refuse(("--prefetch 2: ", "add --zero 3"), "--mesh", "dp=2", "--prefetch", 2)
        refuse(("--zero 1: ", "over it; the axes of which that is true are \"dp\""), "--mesh", "dp=3,tp=2", "--zero", 1,
               "--zero-axis", "tp")
        train = self.folder / "train.mlir"
        tools.succeed("bowline-compile", tools.MODELS / MODEL, "--batch", 6, "--seq", 8, "--compile-to=train", "-o", train)
        self.refuse(("--microbatches: the program of", "past phase 'train'"), "bowline-compile", train,
                    "--compile-from=train", "--microbatches", 3, "-o", self.folder / "x.plan")
        # Microbatches, stages and schedules.
        refuse(("--batch 6", "the 4 microbatches", "use --microbatches 3 or 6, or --batch 4 or 8"), "--microbatches", 4)
        refuse(("the 9 microbatches", "use --microbatches 6, or --batch 9"), "--microbatches", 9)
        pipeline = ["--mesh", "pp=2", "--microbatches", 3, "--schedule"]
        refuse(("3 stages", "has 2 layers", "nearest valid number of ranks along \"pp\" is 2"), "--mesh", "pp=3")
        refuse(("4 stages are asked for, 2 on each", "has 2 layers", 'use schedule "1f1b"'), *pipeline, "interleaved:2")
        refuse(("4 stages are asked for, 2 on each", "has 2 layers", 'use schedule "1f1b"'), *pipeline, "breadth_first:2")
        # Both mistakes are told: the message advises nothing for one of them that the other one would refuse.
        refuse(("4 stages are asked for", 'use schedule "1f1b"; and then --batch 6 must be a multiple of the 4 microbatches'),
               "--mesh", "pp=2", "--microbatches", 4, "--schedule", "interleaved:2")
        # Of the schedule that is advised, not of the given one.
        refuse('has 2 layers; use schedule "1f1b"\n', "--mesh", "pp=2", "--microbatches", 3, "--schedule", "interleaved:2")
        self.refuse(("4 stages are asked for", "; and then --seq 32: the model has 29 positions"), "bowline-compile",
                    tools.MODELS / "gpt2-tiny", "--batch", 4, "--seq", 32, "--mesh", "pp=2", "--schedule", "zb_v", "-o",
                    self.folder / "x.plan")
        refuse(("layer 5", "nearest valid last layer is 1"), "--mesh", "pp=2", "--stages", "[0..0],[1..5]")
        refuse(("no schedule '1f1bb'", "nearest is '1f1b'"), *pipeline, "1f1bb")
        refuse(("--schedule 1f1b: ", "needs stages", '"pp" of 2'), "--mesh", "dp=2", "--schedule", "1f1b")
        refuse("--overlap-chunks 'some' is neither auto nor a number", "--mesh", "tp=2", "--overlap-chunks", "some")
        refuse(("none.csv", "No such file"), *pipeline, self.folder / "none.csv")
        table = file("bad.csv", "F0,F1,B0,F2,B1,B2\nB0,F0,F1,B1,F2,B2\n")
        refuse("bad.csv: rank 1, action 0: B0 of stage 1 waits for F0 of stage 1, which is action 1 of the same rank",
               *pipeline, table)
        refuse("'F2' is of microbatch 2, but the step has 2", "--mesh", "pp=2", "--microbatches", 2, "--schedule", table)

    def test_ir(self):
        out = ["-o", self.folder / "x.plan"]

        def file(name, text):
            path = self.folder / name
            path.write_text(text)
            return path

        self.refuse("none.mlir", "bowline-compile", self.folder / "none.mlir", *out)
        self.refuse("syntax.mlir:1", "bowline-compile", file("syntax.mlir", "graph.func loss @loss("), *out)
        self.refuse(("type.mlir:1", "@loss"), "bowline-compile", file("type.mlir",
            "graph.func loss @loss(%a: tensor<3xf32>) -> tensor<4xf32> { graph.return %a : tensor<3xf32> }"), *out)
        self.refuse("nothing can be run", "bowline-compile", file("empty.mlir", "module {}"), *out)
        text = self.folder / "train.mlir"
        tools.succeed("bowline-compile", tools.MODELS / MODEL, "--batch", 2, "--seq", 5, "--compile-to=train", "-o", text)
        self.refuse(("train.mlir", "printed after phase 'train'", "use --compile-from=train"), "bowline-compile", text,
                    "--compile-from", "memory", *out)
        self.refuse(("printed after phase 'train'", "add --compile-from=train"), "bowline-compile", text, *out)
        self.refuse(("'bowline.phase' is the name of no phase", "--compile-to"), "bowline-compile",
                    file("phase.mlir", 'module attributes {bowline.phase = "stage"} {}'), *out)
        self.refuse(("phase 'stage' is no more", "use shard"), "bowline-compile", text, "--compile-to", "stage", *out)
        self.refuse(("'stages' is no phase", "input, graph, train"), "bowline-compile", text, "--compile-to", "stages", *out)
        # A program that was changed by hand and fails a proof.
        self.refuse(("returned.mlir", "fails a proof", "changed after phase 'local'"), "bowline-compile", file(
            "returned.mlir", """module attributes {
  plan.target = #plan.target<device = "cpu", arch = "x86_64", cpu = "x86-64-v3", threads = 1>
} {
dist.mesh @mesh ["dp"] [1]
module {
  graph.func @f(%x: tensor<16x8xf32>, %o: tensor<3xi32>) -> tensor<16x8xf32> {
    %y = graph.fusion(%x, %o) rows [1, 0, 2] : (tensor<16x8xf32>, tensor<3xi32>) -> tensor<16x8xf32> {
    ^bb0(%a: tensor<16x8xf32>, %b: tensor<3xi32>):
      %t = arith.addf %a, %a : tensor<16x8xf32>
      graph.yield %t : tensor<16x8xf32>
    }
    graph.return %y : tensor<16x8xf32>
  }
  graph.entry @e [@f] repeat [1]
}
}
"""), "--compile-from=local", "--threads", 1, *out)
        self.refuse("-o is missing", "bowline-translate", "--mlir-to-plan", text)
        self.refuse("train.mlir", "bowline-translate", "--plan-to-mlir", text)

    def test_roles(self):
        """The module around roles holds everything for all roles, a role's module its own, and roles lie along one axis."""
        program = """graph.func generate @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  graph.return %x : tensor<4xf32>
}
graph.entry generate @g [@f] repeat [1]
"""
        target = 'plan.target = #plan.target<device = "cpu", arch = "x86_64", cpu = "x86-64-v3", threads = 1>'

        def role(name="", attributes="", inside=""):
            return f"module {name} attributes {{{attributes}}} {{\n{inside}{program}}}\n"

        def module(*roles, attributes="", mesh='dist.mesh @mesh ["pp", "dp"] [2, 1]'):
            return f"module attributes {{{attributes}}} {{\n{mesh}\n{''.join(roles)}}}\n"

        one, axis = 'dist.mesh @mesh ["dp"] [1]', 'stage.axis = "pp"'
        inside = ("is for all roles; write it in the module around them alone",)
        for_all = "which is for all roles; write it on the module around them alone"
        for says, text in (
                (("'plan.target'", for_all), module(role(attributes=target), mesh=one)),
                (("'bowline.phase'", for_all), module(role(attributes='bowline.phase = "local"'), mesh=one)),
                (("'plan.seed'", for_all), module(role(attributes="plan.seed = 1 : i64"), mesh=one)),
                (("'stage.axis'", for_all), module(role("@a", axis), role("@b", axis))),
                (("'dist.mesh'", *inside), module(role(inside='dist.mesh @own ["dp"] [2]\n'), mesh=one)),
                (("'plan.attachment'", *inside), module(role(inside='plan.attachment "a" "b"\n'), mesh=one)),
                (("is a module in the nested module of a role", "roles stand beside each other"),
                 module(f"module {{\n{role()}}}\n", mesh=one)),
                (("is a second mesh", "remove one of them"), module(role(), mesh=one + '\ndist.mesh @more ["dp"] [2]')),
                (("'plan.arena_bytes', which belongs to one role", "move it to the nested module"),
                 module(role(), mesh=one, attributes="plan.arena_bytes = 64 : i64")),
                ("'plan.role_axis', which belongs to one role", module(role(), mesh=one, attributes='plan.role_axis = "dp"')),
                (("role 1 of 2 has no name", "write 'module @stage1 { ... }'"),
                 module(role("@stage0"), role(), attributes=axis)),
                (("ranks of the 2 roles lie", "name it in 'stage.axis'"), module(role("@a"), role("@b"))),
                (("'stage.axis' is \"zz\"", "no axis of the module's dist.mesh"),
                 module(role("@a"), role("@b"), attributes='stage.axis = "zz"')),
                ('"pp", of size 2, but the number of roles is 3',
                 module(*map(role, ("@a", "@b", "@c")), attributes=axis)),
                ('"pp", of size 2, but the number of roles is 1', module(role(), attributes=axis))):
            path = self.folder / "roles.mlir"
            path.write_text(text)
            words = (says,) if isinstance(says, str) else says
            self.refuse(("roles.mlir:", *words), "bowline-compile", path, "--mode", "generate", "--compile-from=local",
                        "--threads", 1, "-o", self.folder / "x.plan")

    def test_plans(self):
        good = self.folder / "good.plan"
        tools.compile_train(MODEL, good)
        data = good.read_bytes()
        flipped = bytearray(data)
        flipped[len(data) // 2] ^= 0x10
        # The version follows the identifier in a table of its own: it is changed through the text, where it is a word.
        bad = {"truncated": data[:len(data) // 2], "empty": b"", "flipped": bytes(flipped), "text": b"hello\n" * 100,
               "identifier": data[:4] + b"BWLQ" + data[8:]}
        for name, content in bad.items():
            path = self.folder / f"{name}.plan"
            path.write_bytes(content)
            for command in (("bowline-run", path, "--data", tools.TOKENS, "--steps", 2, "--metrics",
                             self.folder / "m.jsonl", "--save", self.folder / "s"),
                            ("bowline-check", path), ("bowline-inspect", path),
                            ("bowline-translate", "--plan-to-mlir", path, "-o", self.folder / "x.mlir")):
                self.refuse(f"{name}.plan", *command)
        text, foreign = self.folder / "good.mlir", self.folder / "foreign.plan"
        tools.succeed("bowline-translate", "--plan-to-mlir", good, "-o", text)
        changed = text.read_text()
        self.assertEqual(changed.count('arch = "x86_64"'), 1)
        # A certificate is for its target.
        changed = re.sub(r" (order|values) \[[^\]]*\]", "", changed)
        text.write_text(changed.replace('arch = "x86_64"', 'arch = "riscv64"'))
        tools.succeed("bowline-translate", "--mlir-to-plan", text, "-o", foreign)
        self.refuse("riscv64", "bowline-run", foreign, "--data", tools.TOKENS, "--steps", 2)

    def test_data_and_run_flags(self):
        plan = self.folder / "x.plan"
        tools.compile_train(MODEL, plan)
        files = {"short.bin": tools.llmc_file([1, 2, 3]),
                 "cut.bin": tools.llmc_file(tools.random_tokens(500, 257))[:-100],
                 "magic.bin": tools.llmc_file(tools.random_tokens(500, 257), magic=20240521),
                 "beyond.bin": tools.llmc_file([257] + tools.random_tokens(500, 257)),
                 "nothing.bin": b""}
        for name, content in files.items():
            (self.folder / name).write_bytes(content)
            self.refuse(name, "bowline-run", plan, "--data", self.folder / name, "--steps", 2, "--metrics",
                        self.folder / "m.jsonl", "--save", self.folder / "s")
        run = ["bowline-run", plan, "--data", tools.TOKENS]
        self.refuse("none.bin", "bowline-run", plan, "--data", self.folder / "none.bin", "--steps", 2)
        for prefix in ("u8:", "uint16:", "70%:u16:", "0,5:"):
            self.refuse(f"'{prefix.split(':')[0]}' is neither u16 nor u32", "bowline-run", plan, "--data",
                        f"{prefix}{tools.TOKENS}", "--steps", 2)
        self.refuse("'u16:' names no file", "bowline-run", plan, "--data", "u16:", "--steps", 2)
        self.refuse("--steps", *run, "--steps", 0)
        self.refuse("--steps", *run)
        self.refuse("--metrics", *run, "--steps", 2, "--metrics")
        self.refuse("none/m.jsonl", *run, "--steps", 2, "--metrics", self.folder / "none" / "m.jsonl")
        self.refuse("/proc/none", *run, "--steps", 2, "--save", "/proc/none", "--metrics", self.folder / "m.jsonl")

    def test_flags_of_runs(self):
        plan, saves = self.folder / "x.plan", self.folder / "s"
        tools.compile_train(MODEL, plan)
        run = ["bowline-run", plan, "--data", tools.TOKENS, "--steps", 2, "--metrics", self.folder / "m.jsonl"]
        for flag, values, says in (
                ("--timeout", ("0", "-3", "x", "nan", "inf"), "is not a number above 0"),
                ("--timeout", ("1e300",), "is more than a year of seconds"),
                ("--rendezvous-timeout", ("0", "-1", "soon", "nan"), "is not a number above 0"),
                ("--nproc", ("-1", "1.5", "99999999999"), "is not a number of processes from 1 on"),
                ("--rank", ("x", "0.5", "99999999999"), "is not a whole number"),
                ("--world-size", ("two", "99999999999"), "is not a whole number"),
                ("--local-rank", ("x",), "is not a whole number"),
                ("--steps", ("99999999999999999999", "1.5"), "is not a number from 1 on"),
                ("--eval-every", ("0", "-2", "often"), "is not a number from 1 on"),
                ("--eval-batches", ("0",), "is not a number from 1 on"),
                ("--save-every", ("0",), "is not a number from 1 on"),
                ("--keep", ("0", "-1"), "is not a number from 1 on"),
                ("--order", ("random",), ("sequential", "shuffle"))):
            for value in values:
                given = run[:-4] + run[-2:] if flag == "--steps" else run
                self.refuse((flag, value, *((says,) if isinstance(says, str) else says)), *given, f"{flag}={value}")
        for flag in ("--data", "--eval-data", "--weights", "--save", "--resume", "--trace", "--rendezvous", "--link",
                     "--rank", "--nproc"):
            self.refuse(flag, "bowline-run", plan, flag)
        self.refuse("--timeout", *run, "--timeout", 1, "--timeout", 2)
        self.refuse(("no driver 'gpu'", "cpu, null", "libbowline_gpu.so"), *run, "--driver", "gpu")
        self.refuse("extra.plan", *run, "extra.plan")
        # Flags that need another flag, or exclude one.
        self.refuse(("--eval-every", "--eval-data"), *run, "--eval-every", 2)
        self.refuse(("--save-every", "--save DIR"), *run, "--save-every", 2)
        self.refuse(("--keep", "--save DIR"), *run, "--keep", 2)
        self.refuse(("--trace", "--profile"), *run, "--trace", self.folder / "t", "--profile")
        # Files and directories, before anything is trained.
        for flag in ("--weights", "--resume"):
            self.refuse(("no directory", "none"), *run, flag, self.folder / "none")
            self.refuse((str(plan), "is a file, not a directory"), *run, flag, plan)
        self.refuse(("none.bin", "No such file"), *run, "--eval-data", self.folder / "none.bin")
        self.refuse("x.plan", *run, "--save", plan)
        for ranks, suffix in ((1, ""), (2, ".rank-0")):
            mesh = self.folder / f"{ranks}.plan"
            tools.compile_train(MODEL, mesh, *(["--mesh", "tp=2"] if ranks > 1 else []))
            how = ["--nproc", 2] if ranks > 1 else ["--save", saves]
            trace = self.folder / "none" / "t"
            done = tools.start("bowline-run", mesh, *run[2:], "--trace", trace, *how)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertRegex(done.stderr.decode(), rf"--trace: cannot write '{trace}(\.rank-[01])?': No such file")
            self.assertNotIn(b"step 1", done.stderr)
        self.refuse(("x.plan' is for one rank", "leave out --link"), *run, "--link", "latency=1us")
        run[1] = mesh
        for word in ("bogus", "tp:latency=-1us", "tp:bandwidth=0GB/s", "tp:speed=1"):
            self.refuse((f"--link {word}", "such as bandwidth=10GB/s,latency=5us"), *run, "--link", word)
        self.refuse(("--link pp:latency=1us", "no axis 'pp'", "its axes are tp"), *run, "--link", "pp:latency=1us")
        self.refuse(("along 'tp' is given twice",), *run, "--link", "tp:latency=1us", "--link", "tp:latency=2us")

    def test_outputs_that_are_inputs(self):
        model = self.model("mine", {}, WEIGHTS.read_bytes())
        sizes = ["--batch", 3, "--seq", 5]
        compile_ = "bowline-compile"
        (self.folder / "link").symlink_to(model / "model.safetensors")
        for name in ("config.json", "model.safetensors", "../link"):
            for output in (["-o", model / name], ["-o", self.folder / "x.plan", "--kernel-listing", model / name]):
                self.refuse((f"{output[-2]} names", "a file of MODEL", "would be overwritten"), compile_, model, *sizes,
                            *output)
        strategy, graph = self.folder / "s.mlir", self.folder / "g.mlir"
        tools.succeed(compile_, model, *sizes, "--compile-to", "graph", "-o", graph)
        strategy.write_text('"dist.strategy"() : () -> ()')
        self.refuse("-o and --strategy name the same file", compile_, model, *sizes, "--strategy", strategy, "-o",
                    strategy)
        self.refuse("-o and MODEL name the same file", compile_, graph, "--compile-to", "graph", "-o", graph)
        # A file beside a model that is no part of the model may be overwritten.
        for _ in range(2):
            tools.succeed(compile_, model, *sizes, "-o", model / "x.plan")

    def test_choices_without_effect_are_noted(self):
        plan, processors = self.folder / "x.plan", len(os.sched_getaffinity(0))
        for flags, says in ((["--lr", 0], "note: --lr 0: no step changes a parameter"),
                            (["--threads", processors + 1], f"this machine has {processors} processors")):
            done = tools.start("bowline-compile", tools.MODELS / MODEL, "--batch", 3, "--seq", 5, *flags, "-o", plan)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(says, done.stderr.decode())

    def test_flags_of_ranks(self):
        plan = self.folder / "x.plan"
        tools.compile_train(MODEL, plan, "--mesh", "tp=2")
        run = ["bowline-run", plan, "--data", tools.TOKENS, "--steps", 2]
        two = [*run, "--world-size", 2, "--rendezvous", f"file:{self.folder / 'meet'}"]
        self.refuse("ranks are 0 to 1", *two, "--rank", -1)
        self.refuse("ranks are 0 to 1", *two, "--rank", 2)
        self.refuse("--local-rank=5", *two, "--rank", 0, "--local-rank", 5)
        self.refuse(("--world-size=0", "at least 1"), *run, "--rank", 0, "--world-size", 0)
        self.refuse("without a number of ranks", *run, "--rendezvous", "file:meet")
        for where, says in (("file:", "no path"), ("host:", "no port"), (":1", "no host"), ("[::1:1", "bracket"),
                            ("::1:1", "brackets")):
            self.refuse((f"rendezvous '{where}'", says, "file:PATH"), *run, "--rank", 0, "--world-size", 2,
                        "--rendezvous", where)
        self.refuse(("none/meet", "No such file"), *two[:-1], f"file:{self.folder / 'none' / 'meet'}", "--rank", 0)
        self.refuse("is a directory", *two[:-1], f"file:{self.folder}", "--rank", 0)
        self.refuse(("rendezvous", "a year"), *two, "--rank", 0, "--rendezvous-timeout", "1e300")
        self.refuse(("timeout", "a year"), *two, "--rank", 0, "--timeout", "1e300")

    def test_flags_of_tools_that_read_plans(self):
        plan, text = self.folder / "x.plan", self.folder / "x.mlir"
        tools.compile_train(MODEL, plan)
        for tool in ("bowline-check", "bowline-inspect"):
            self.refuse("is required", tool)
            self.refuse(("none.plan", "No such file"), tool, self.folder / "none.plan")
            self.refuse("is a directory", tool, self.folder)
            self.refuse("other.plan", tool, plan, "other.plan")
            self.refuse("--nonsense", tool, plan, "--nonsense")
            self.refuse("--json", tool, plan, "--json=perhaps")
        inspect = ["bowline-inspect", plan]
        for flag in ("--about", "--trace", "--svg", "--entry"):
            self.refuse(flag, *inspect, flag)
        trace = ["--trace", self.folder / "t.json"]
        self.refuse(("--entry", "--trace"), *inspect, "--entry", "eval_step")
        picture = ["--svg", self.folder / "t.svg"]
        for other in (["--memory"], ["--why"], ["--about", "loss"], ["--json"]):
            self.refuse(("--trace", other[0]), *inspect, *trace, *other)
            self.refuse(("--svg", other[0]), *inspect, *picture, *other)
        self.refuse(("--why", "--memory"), *inspect, "--memory", "--why")
        self.refuse(("--about", "--memory"), *inspect, "--memory", "--about", "loss")
        self.refuse(("no_entry", "'eval_step', 'init', 'train_step'"), *inspect, *trace, "--entry", "no_entry")
        self.refuse(("none/t", "No such file"), *inspect, "--trace", self.folder / "none" / "t")
        self.refuse("is a directory", *inspect, "--trace", self.folder)
        self.refuse("--trace and the plan name the same file", *inspect, "--trace", plan)
        self.refuse("--svg and the plan name the same file", *inspect, "--svg", plan)
        self.refuse("--svg and --trace name the same file", *inspect, *trace, "--svg", trace[1])

        translate = "bowline-translate"
        self.refuse("INPUT is required", translate)
        self.refuse("[--plan-to-mlir,--mlir-to-plan]", translate, plan)
        self.refuse("[--plan-to-mlir,--mlir-to-plan]", translate, "--plan-to-mlir", "--mlir-to-plan", plan)
        for direction in ("--plan-to-mlir", "--mlir-to-plan"):
            output = ["-o", self.folder / "y"]
            self.refuse(("cannot open", "none.x", "No such file"), translate, direction, self.folder / "none.x", *output)
            self.refuse("is a directory", translate, direction, self.folder, *output)
            self.refuse("--output", translate, direction, plan, "-o")
            self.refuse("--nonsense", translate, direction, plan, "--nonsense", *output)
        tools.succeed(translate, "--plan-to-mlir", plan, "-o", text)
        for direction, path in (("--plan-to-mlir", plan), ("--mlir-to-plan", text)):
            self.refuse(("none/y", "No such file"), translate, direction, path, "-o", self.folder / "none" / "y")
            self.refuse("is a directory", translate, direction, path, "-o", self.folder)
            self.refuse("-o and INPUT name the same file", translate, direction, path, "-o", path)
        self.refuse(("cannot be read", "it is a plan that `bowline compile` wrote"), translate, "--mlir-to-plan", plan, "-o", self.folder / "y")

    def test_flags_of_generation(self):
        plan = self.folder / "g.plan"
        tools.compile_generate(MODEL, plan)
        run = ["bowline-run", plan, "--weights", tools.MODELS / MODEL]
        text = [*run, "--prompt", "A", "--max-new-tokens", 2]
        self.refuse("--weights DIR", "bowline-run", plan, "--prompt", "A", "--max-new-tokens", 2)
        self.refuse("--prompt has an empty value", *run, "--prompt", "", "--max-new-tokens", 2)
        for flag, values in (("--max-new-tokens", ("0", "-1", "many")), ("--temperature", ("-1", "nan", "inf", "hot")),
                             ("--seed", ("-1", "x", "18446744073709551616"))):
            given = text[:-2] if flag == "--max-new-tokens" else text
            for value in values:
                self.refuse((flag, f"{value} is not a number"), *given, f"{flag}={value}")
        self.refuse(("generates text", "--data"), *text, "--data", tools.TOKENS)

    def test_a_full_disk_while_saving_keeps_what_was_saved(self):
        plan, saves = self.folder / "x.plan", self.folder / "s"
        tools.compile_train(MODEL, plan)
        run = ["--data", tools.TOKENS, "--save", saves, "--quiet"]
        tools.succeed("bowline-run", plan, *run, "--steps", 2)
        self.refuse("step 4", "bowline-run", plan, *run, "--steps", 4, "--resume", saves, code=3,
                    before="ulimit -f 100")
        tools.succeed("bowline-run", plan, *run, "--steps", 4, "--resume", saves)


if __name__ == "__main__":
    tools.main()
