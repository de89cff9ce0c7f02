#!/usr/bin/env python3
"""Weights that are read where they are in mapped files: the text is that of copied ones, and memory holds them once."""

import array
import json
import os
import pathlib
import random
import re
import struct
import subprocess
import time

import tools

TEXT = ["--prompt", "A knot is", "--max-new-tokens", "24", "--seed", "5"]
FAMILIES = sorted(path.name for path in tools.MODELS.iterdir())

MIB = 1 << 20

# A llama of some 118 MiB of weights, nearly all of them in matrices.
LARGE = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 256, "hidden_size": 768,
    "intermediate_size": 2048, "num_hidden_layers": 4, "num_attention_heads": 12, "num_key_value_heads": 12,
    "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
    "tie_word_embeddings": False, "attention_bias": False, "mlp_bias": False, "torch_dtype": "float32",
}


def shapes_of(config):
    """Name and shape of each tensor of the llama."""
    hidden, inner, ids = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    yield "model.embed_tokens.weight", [ids, hidden]
    for layer in range(config["num_hidden_layers"]):
        prefix = f"model.layers.{layer}."
        yield prefix + "input_layernorm.weight", [hidden]
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            yield f"{prefix}self_attn.{name}.weight", [hidden, hidden]
        yield prefix + "post_attention_layernorm.weight", [hidden]
        yield prefix + "mlp.gate_proj.weight", [inner, hidden]
        yield prefix + "mlp.up_proj.weight", [inner, hidden]
        yield prefix + "mlp.down_proj.weight", [hidden, inner]
    yield "model.norm.weight", [hidden]
    yield "lm_head.weight", [ids, hidden]


def write_large(folder):
    """The model's directory; returns the bytes of its weights."""
    (folder / "config.json").write_text(json.dumps(LARGE))
    block = array.array("f", (random.Random(tools.TEST_SEED).gauss(0, 0.04) for _ in range(1 << 16)))
    header, position = {}, 0
    for name, shape in shapes_of(LARGE):
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [position, position + 4 * count]}
        position += 4 * count
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, shape in shapes_of(LARGE):
            count = shape[0] * (shape[1] if len(shape) > 1 else 1)
            if len(shape) == 1:
                array.array("f", [1.0] * count).tofile(file)
                continue
            begin = hash_of(name) % 1000
            values = (block[begin:] + block[:begin]) * (count // len(block) + 1)
            values[:count].tofile(file)
    return position


def hash_of(name):
    return sum((i + 1) * ord(c) for i, c in enumerate(name))


def memory_of(pid):
    """Bytes of the process in memory that are its own, and those that belong to files."""
    text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    value = {key: 1024 * int(size) for key, size in re.findall(r"^(\w+): +(\d+) kB$", text, re.M)}
    return value["Anonymous"], value["Rss"] - value["Anonymous"]


class MappedWeights(tools.ToolTest):
    def compile(self, model, name, *flags):
        plan = self.folder / f"{name}.plan"
        tools.succeed("bowline-compile", model, "--mode", "generate", "--seq", "29", *tools.ONE_THREAD, *flags,
                      "-o", plan)
        self.assertEqual(tools.succeed("bowline-check", plan).decode().splitlines()[-1], "sound")
        return plan

    def shifted(self, model, shift):
        """The model's directory, with its weights `shift` bytes behind a multiple of 64."""
        folder = self.folder / f"{model}-{shift}"
        folder.mkdir()
        (folder / "config.json").write_bytes((tools.MODELS / model / "config.json").read_bytes())
        data = (tools.MODELS / model / "model.safetensors").read_bytes()
        (length,) = struct.unpack("<Q", data[:8])
        spaces = (shift - 8 - length) % 64
        (folder / "model.safetensors").write_bytes(struct.pack("<Q", length + spaces) + data[8:8 + length] +
                                                   b" " * spaces + data[8 + length:])
        return folder

    def generate(self, plan, weights, *flags):
        """The generated text, and the numbers of bytes read in place and copied, or None where the tool prints no numbers."""
        done = tools.start("bowline-run", plan, "--weights", weights, *TEXT, *flags)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        note = re.search(rb"weights: (\d+) bytes are read in place from the mapped files, (\d+) were copied", done.stderr)
        return done.stdout, note and tuple(int(part) for part in note.groups())

    def test_every_family_writes_the_same(self):
        for model in FAMILIES:
            with self.subTest(model=model):
                copied = self.compile(tools.MODELS / model, "copied")
                mapped = self.compile(tools.MODELS / model, "mapped", "--map-weights")
                text, note = self.generate(copied, tools.MODELS / model)
                self.assertIsNone(note)
                header = json.loads(tools.succeed("bowline-inspect", mapped, "--json"))["header"]
                (arena,) = header["other_arenas"]
                self.assertEqual(arena["space"], "External")
                for shift in (0, 8, 4, 1):
                    again, (in_place, by_copy) = self.generate(mapped, self.shifted(model, shift))
                    self.assertEqual(again, text)
                    self.assertEqual(in_place + by_copy, arena["bytes"])
                    if not tools.TEST_DRIVER:
                        self.assertEqual(by_copy, 0 if shift % 4 == 0 else arena["bytes"])
                again, note = self.generate(mapped, tools.MODELS / model, "--driver", "discrete:seed=4")
                self.assertEqual((again, note), (text, (0, arena["bytes"])))

    def test_the_text_of_the_plan_says_the_same(self):
        plan = self.compile(tools.MODELS / "llama-tiny", "mapped", "--map-weights")
        text = self.folder / "x.mlir"
        tools.succeed("bowline-translate", "--plan-to-mlir", plan, "-o", text)
        self.assertRegex(text.read_text(), r"parameter in +external : !plan.buffer<")
        again = self.folder / "again.plan"
        tools.succeed("bowline-translate", "--mlir-to-plan", text, "-o", again)
        self.assertEqual(again.read_bytes(), plan.read_bytes())

    def test_every_step_computes_the_same(self):
        tools.succeed("bowline-compile", tools.MODELS / "llama-tied", "--mode", "generate", "--seq", "16",
                      *tools.ONE_THREAD, "--map-weights", "--verify-each=equiv", "-o", self.folder / "x.plan")

    def test_ranks_map_what_lies_in_one_piece(self):
        """Rows of a matrix that a rank has lie together, columns do not."""
        model = tools.MODELS / "llama-tiny"
        text, _ = self.generate(self.compile(model, "copied", "--mesh", "tp=2"), model)
        again, (in_place, by_copy) = self.generate(self.compile(model, "mapped", "--mesh", "tp=2", "--map-weights"), model)
        self.assertEqual(again, text)
        if not tools.TEST_DRIVER:
            self.assertGreater(in_place, by_copy)
            self.assertGreater(by_copy, 0)

    def test_only_plans_that_generate_on_processors_map(self):
        for flags, why in ((["--mode", "train", "--batch", "2"], b"add --mode generate"),
                           (["--mode", "generate", "--target", "cuda"], b"kernels of the target cuda do not read")):
            done = tools.start("bowline-compile", tools.MODELS / "llama-tiny", "--seq", "8", *flags, "--map-weights", "-o",
                               self.folder / "x.plan")
            self.assertEqual(done.returncode, 1)
            self.assertIn(why, done.stderr)

    def measure(self, plan, weights):
        """(text, bytes of its own, bytes of files) of a process that generates, before it wrote its last byte."""
        tokens = 5
        command = [tools.tool("bowline-run"), str(plan), "--weights", str(weights), "--prompt", "A knot is",
                   "--max-new-tokens", str(tokens), "--temperature", "0", "--driver", "cpu"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            text, samples = b"", []
            while chunk := os.read(process.stdout.fileno(), 1):
                text += chunk
                if len(text) < tokens:  # then it ends
                    samples.append(memory_of(process.pid))
            self.assertEqual(process.wait(timeout=tools.TIMEOUT_SECONDS), 0)
        self.assertEqual(len(text), tokens)
        return text, *samples[-1]

    def test_memory_holds_weights_once(self):
        model = self.folder / "large"
        model.mkdir()
        weights = write_large(model)
        self.assertGreater(weights, 100 * MIB)
        copied = self.compile(model, "copied")
        plain = self.compile(model, "plain", "--disable-step", "pack-weights")
        mapped = self.compile(model, "mapped", "--map-weights")
        results = {}
        for name, plan in (("copied", copied), ("plain", plain), ("mapped", mapped)):
            begin = time.monotonic()
            results[name] = self.measure(plan, model)
            _, own, files = results[name]
            print(f"{name}: {own / MIB:.1f} MiB of its own, {files / MIB:.1f} MiB of files, weights {weights / MIB:.1f} MiB, "
                  f"{time.monotonic() - begin:.2f} s")
        self.assertEqual(len({text for text, _, _ in results.values()}), 1)
        # Copied weights are memory of the process, and once more where they are packed; of mapped ones nothing is.
        self.assertGreater(results["plain"][1], weights)
        self.assertLess(results["plain"][2], weights // 4)
        self.assertLess(results["mapped"][1], weights // 4)
        self.assertGreater(results["mapped"][2], weights * 9 // 10)
        self.assertGreaterEqual(results["copied"][1], results["plain"][1] - 8 * MIB)


if __name__ == "__main__":
    tools.main()
