#!/usr/bin/env python3
"""Text from GGUF files is that from a directory of the same weights."""

import json
import re
import struct

import tools
from gguf_models import (F16, F32, Q8_0, gpt2_rounded, interleaved, q8_0, random_gpt2, random_tensors, read_tensors, string,
                         transposed, write_directory, write_gguf, write_gpt2)

FAMILIES = ["linear-tiny", "llama-tied", "llama-tiny", "llama3-tiny", "mistral-tiny", "qwen2-tiny", "qwen3-tiny"]
# Two layers whose rows are whole blocks.
BLOCKS = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 256, "hidden_size": 64,
    "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": False,
}

# GPT-2 with rows that are whole blocks, three heads and an odd vocabulary.
GPT2_BLOCKS = {
    "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": 259, "n_embd": 96, "n_inner": 160,
    "n_layer": 2, "n_head": 3, "n_positions": 64, "layer_norm_epsilon": 1e-5, "activation_function": "gelu_new",
    "tie_word_embeddings": True,
}


class Gguf(tools.ToolTest):
    def plan_of(self, model, seq=24):
        plan = self.folder / f"{model.name}.plan"
        tools.succeed("bowline-compile", model, "--mode", "generate", "--seq", seq, *tools.ONE_THREAD, "-o", plan)
        return plan

    def text_of(self, model, plan=None):
        return tools.succeed("bowline-run", plan or self.plan_of(model), "--weights", model, "--prompt-tokens",
                             "65,32,107,110,111,116", "--max-new-tokens", "24", "--temperature", "0")

    def test_every_family_writes_the_same(self):
        for family in FAMILIES:
            with self.subTest(family=family):
                directory, path = tools.MODELS / family, self.folder / f"{family}.gguf"
                config = json.loads((directory / "config.json").read_text())
                write_gguf(path, config, list(read_tensors(directory)))
                text = self.text_of(directory)
                self.assertEqual(len(text.split(b",")), 24)
                self.assertEqual(self.text_of(path), text)
                # Either fits the plan of the other.
                self.assertEqual(self.text_of(path, self.plan_of(directory)), text)
                self.assertEqual(self.text_of(directory, self.plan_of(path)), text)

    def test_order_of_rows_matters(self):
        directory, path = tools.MODELS / "llama-tiny", self.folder / "x.gguf"
        config = json.loads((directory / "config.json").read_text())
        # Heads of queries that are not where they belong.
        tensors = [(key, shape, interleaved(values, config["num_attention_heads"], *shape) if "q_proj" in key else values)
                   for key, shape, values in read_tensors(directory)]
        write_gguf(path, config, tensors)
        self.assertNotEqual(self.text_of(path), self.text_of(directory))

    def test_blocks(self):
        tensors = list(random_tensors(BLOCKS))
        write_gguf(self.folder / "x.gguf", BLOCKS, tensors, quantized=True)
        rounded = [(key, shape, q8_0(values)[1] if len(shape) == 2 else values) for key, shape, values in tensors]
        write_directory(self.folder / "rounded", BLOCKS, rounded)
        self.assertEqual(self.text_of(self.folder / "x.gguf"), self.text_of(self.folder / "rounded"))

    def test_plans_for_serving_keep_blocks(self):
        tensors = list(random_tensors(BLOCKS))
        path, rounded = self.folder / "x.gguf", self.folder / "rounded"
        write_gguf(path, BLOCKS, tensors, quantized=True)
        write_directory(rounded, BLOCKS, [(key, shape, q8_0(values)[1] if len(shape) == 2 else values)
                                          for key, shape, values in tensors])
        kept, computed, whole = (self.folder / f"{name}.plan" for name in ("kept", "computed", "whole"))
        tools.succeed("bowline-compile", rounded, "--mode", "generate", "--seq", "32", *tools.ONE_THREAD, "-o", whole)
        for plan, flags in ((kept, []), (computed, ["--weights-dtype", "f32"])):
            tools.succeed("bowline-compile", path, "--mode", "serve", "--max-context", "32", "--buckets", "1,4",
                          "--kv-blocks", "4", *tools.ONE_THREAD, *flags, "-o", plan)
        text = self.text_of(rounded, whole)
        for weights, plan in ((path, kept), (path, computed), (rounded, computed)):
            self.assertEqual(self.text_of(weights, plan), text, plan)
        # Ranks divide whole blocks: rows of a matrix, or blocks of its rows where their number divides.
        divided = self.folder / "divided.plan"
        tools.succeed("bowline-compile", path, "--mode", "serve", "--max-context", "32", "--buckets", "1,4",
                      "--kv-blocks", "4", *tools.ONE_THREAD, "--mesh", "tp=2", "--verify-each=equiv", "-o", divided)
        self.assertEqual(self.text_of(path, divided), text)
        module = tools.succeed("bowline-translate", "--plan-to-mlir", divided, "-o", "-").decode()
        # Of the tables of tokens and logits, of queries and keys, and of the projection from heads.
        for shape in ("128x2x34", "32x2x34", "16x2x34", "64x1x34"):
            self.assertIn(f"tensor<{shape}xui8>", module)
        # The matrices alone are in blocks.
        module = tools.succeed("bowline-translate", "--plan-to-mlir", kept, "-o", "-").decode()
        self.assertEqual(module.count('format "q8_0"'), sum(len(shape) == 2 for _, shape, _ in tensors))
        self.assertIn("'model.embed_tokens.weight' is in no blocks in",
                      self.refusal("bowline-run", kept, "--weights", rounded, "--prompt-tokens", "1"))

    def test_plans_that_map_weights_read_blocks_where_they_lie(self):
        tensors = list(random_tensors(BLOCKS))
        path = self.folder / "x.gguf"
        for quantized in (True, False):
            with self.subTest(quantized=quantized):
                write_gguf(path, BLOCKS, tensors, quantized=quantized)
                mapped = self.serve_plan_of(path, f"mapped{quantized}", "--map-weights")
                done = tools.start("bowline-run", mapped, "--weights", path, "--prompt-tokens", "65,32,107,110,111,116",
                                   "--max-new-tokens", "24", "--temperature", "0")
                self.assertEqual(done.returncode, 0, done.stderr.decode())
                self.assertEqual(done.stdout, self.text_of(path, self.serve_plan_of(path, f"copied{quantized}")))
                note = re.search(rb"weights: (\d+) bytes are read in place from the mapped files, (\d+) were copied",
                                 done.stderr)
                # Rows of queries and keys have another order in the file.
                sizes = {True: 0, False: 0}
                for key, shape, values in tensors:
                    size = len(values) * 34 // 32 if quantized and len(shape) == 2 else 4 * len(values)
                    sizes["q_proj" in key or "k_proj" in key] += size
                self.assertEqual([int(n) for n in note.groups()], [sizes[False], sizes[True]])

    def test_ranks_that_have_the_whole_table_of_tokens(self):
        path, one, two = self.folder / "x.gguf", self.folder / "one.plan", self.folder / "two.plan"
        # Rows that two ranks do not divide, of two blocks that they would.
        config = {**BLOCKS, "vocab_size": BLOCKS["vocab_size"] - 1}
        write_gguf(path, config, list(random_tensors(config)), quantized=True)
        for plan, flags in ((one, []), (two, ["--mesh", "tp=2", "--verify-each=equiv"])):
            tools.succeed("bowline-compile", path, "--mode", "serve", "--max-context", "32", "--buckets", "1,4",
                          "--kv-blocks", "4", *tools.ONE_THREAD, *flags, "-o", plan)
        self.assertEqual(self.text_of(path, two), self.text_of(path, one))

    def serve_plan_of(self, model, name, *flags):
        plan = self.folder / f"{name}.plan"
        tools.succeed("bowline-compile", model, "--mode", "serve", "--max-context", "32", "--buckets", "1,4",
                      "--kv-blocks", "4", *tools.ONE_THREAD, *flags, "-o", plan)
        return plan

    def test_gpt2_of_the_repository(self):
        """Sizes that are odd, in F32; plans fit either."""
        directory, path = tools.MODELS / "gpt2-tiny", self.folder / "x.gguf"
        config = json.loads((directory / "config.json").read_text())
        write_gpt2(path, config, list(read_tensors(directory)))
        text = self.text_of(directory)
        self.assertEqual(len(text.split(b",")), 24)
        self.assertEqual(self.text_of(path), text)
        self.assertEqual(self.text_of(path, self.plan_of(directory)), text)
        self.assertEqual(self.text_of(directory, self.plan_of(path)), text)

    def test_gpt2_of_every_type(self):
        for is_tied in (True, False):
            config = {**GPT2_BLOCKS, "tie_word_embeddings": is_tied}
            tensors = list(random_gpt2(config))
            for kind in (F32, F16, Q8_0):
                with self.subTest(kind=kind, is_tied=is_tied):
                    name = f"x{kind}{is_tied}"
                    path, rounded = self.folder / f"{name}.gguf", self.folder / f"{name}.rounded"
                    write_gpt2(path, config, tensors, kind)
                    write_directory(rounded, config, list(gpt2_rounded(tensors, kind)))
                    text = self.text_of(rounded, self.plan_of(rounded, seq=32))
                    self.assertEqual(self.text_of(path, self.plan_of(path, seq=32)), text)
                    # A plan for serving keeps blocks; one that does not also fits the directory.
                    kept, computed = (self.serve_plan_of(path, f"{name}.{dtype}", "--weights-dtype", dtype)
                                      for dtype in ("as-stored", "f32"))
                    for weights, plan in ((path, kept), (path, computed), (rounded, computed)):
                        self.assertEqual(self.text_of(weights, plan), text, plan)
                    module = tools.succeed("bowline-translate", "--plan-to-mlir", kept, "-o", "-").decode()
                    matrices = sum(len(shape) == 2 for _, shape, _ in tensors) - 1
                    self.assertEqual(module.count('format "q8_0"'), matrices if kind == Q8_0 else 0)

    def test_gpt2_orders_matter(self):
        """The text changes where a square matrix is stored as directories have it."""
        config, path, rounded = GPT2_BLOCKS, self.folder / "x.gguf", self.folder / "rounded"
        tensors = list(random_gpt2(config))
        wrong = [(key, shape, transposed(values, *shape) if "attn.c_proj.weight" in key else values)
                 for key, shape, values in tensors]
        write_directory(rounded, config, tensors)
        write_gpt2(path, config, wrong)
        self.assertNotEqual(self.text_of(path), self.text_of(rounded))

    def test_gpt2_refusals(self):
        config, path = GPT2_BLOCKS, self.folder / "x.gguf"
        tensors = list(random_gpt2(config))
        command = ["bowline-compile", path, "--mode", "generate", "--seq", "8", "-o", self.folder / "y.plan"]
        write_gpt2(path, config, tensors[:-1])
        self.assertIn(f"'{tensors[-1][0]}' is missing, but", self.refusal(*command))
        write_gpt2(path, {**config, "n_inner": 161}, tensors)
        self.assertIn("but the metadata asks for the shape [96, 161]", self.refusal(*command))
        write_gpt2(path, config, tensors, more=[string("gpt2.attention.head_count_kv") + struct.pack("<II", 4, 1)])
        self.assertIn('"gpt2.attention.head_count_kv" = 1 is not supported', self.refusal(*command))
        write_gpt2(path, config, tensors, more=[string("gpt2.rope.freq_base") + struct.pack("<If", 6, 10000.0)])
        self.assertIn('the key "gpt2.rope.freq_base" is not supported', self.refusal(*command))

    def refusal(self, name, *arguments):
        done = tools.start(name, *arguments)
        self.assertEqual(done.returncode, 1, done.stderr.decode())
        return done.stderr.decode()

    def test_refusals(self):
        directory, path = tools.MODELS / "llama-tiny", self.folder / "x.gguf"
        config = json.loads((directory / "config.json").read_text())
        tensors = list(read_tensors(directory))
        compile_path = ["bowline-compile", path, "--mode", "generate", "--seq", "8", "-o", self.folder / "y.plan"]
        plan = self.plan_of(directory)
        run_path = ["bowline-run", plan, "--weights", path, "--prompt-tokens", "1", "--max-new-tokens", "2"]
        write_gguf(path, config, tensors[:-1])
        missing = tensors[-1][0]
        self.assertIn(f"'{missing}' is missing", self.refusal(*run_path))
        write_gguf(path, {**config, "rope_theta": 5000.0}, tensors)
        self.assertIn('"rope_theta" is 5000.0, but 10000.0 in the plan', self.refusal(*run_path))
        write_gguf(path, {**config, "intermediate_size": 54}, tensors)
        self.assertIn("but the metadata asks for the shape [54, 36]", self.refusal(*compile_path))
        write_gguf(path, config, tensors)
        path.write_bytes(path.read_bytes()[:-100])
        for command in (compile_path, run_path):
            self.assertIn("lies beyond the end of the file", self.refusal(*command))


if __name__ == "__main__":
    tools.main()
