#!/usr/bin/env python3
"""bowline-compile --report prints the rows of docs/memory.md beside those of the plan, and says what does not pay."""

import json
import pathlib
import re

import tools
from memory_formula import Rank, Shape, Strategy, predicted
from memory_rows import at_peak, recorded_text

RECORDED = tools.TEST_DIR / "Unit" / "Driver" / "memory-rows.json"

SHAPE = Shape(hidden=256, inner=688, layers=8, heads=8, key_heads=4, vocabulary=2000)
BF16 = {"dtype": "bf16", "tokens": 256}
STRATEGIES = {
    "dp f32": Strategy(data=2, tokens=256),
    "dp bf16": Strategy(data=2, **BF16),
    "zero 1 selective": Strategy(data=4, zero=1, recompute="selective", **BF16),
    "zero 2, microbatches": Strategy(data=4, zero=2, microbatches=4, **BF16),
    "zero 3 f32": Strategy(data=4, zero=3, tokens=256),
    "zero 3 full": Strategy(data=2, sharded=4, zero=3, recompute="full", **BF16),
    "zero 3 once": Strategy(data=2, zero=3, once=True, microbatches=4, **BF16),
    "pp gpipe, dp zero 3": Strategy(stages=2, data=2, zero=3, once=True, schedule="gpipe", microbatches=4, **BF16),
    "tp, sp": Strategy(tensor=4, sequence=True, **BF16),
    "pp": Strategy(stages=2, microbatches=4, **BF16),
    "pp interleaved, dp zero 1": Strategy(stages=2, data=2, zero=1, schedule="interleaved", chunks=2, microbatches=4,
                                          tokens=256),
}

# The rows of the table, by those of docs/memory.md.
ROWS = {
    "weights and moments": ["weights_and_moments"],
    "gradients of parameters": ["gradients", "passing_gradients"],
    "activations": ["activations"],
    "values that are computed again": ["recomputed"],
    "copies and gathered matrices": ["copies", "gathered"],
    "logits and their gradients": ["logits"],
    "gradients of activations": ["gradients_of_activations"],
}
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
ROW = re.compile(r"^  (\S.*?) {2,}(-|[0-9.]+ [KMG]?i?B) {2,}([0-9.]+ [KMG]?i?B)$", re.M)
TITLE = re.compile(r"^memory of a step by the formulas of docs/memory.md, and of this plan(?:, of role stage(\d+))?:\n", re.M)


def printed(size):
    """As reports print an amount of bytes."""
    size = round(size)
    if size < 1024:
        return f"{size} B"
    for unit in ("KiB", "MiB", "GiB"):
        size /= 1024
        if size < 1024:
            break
    return f"{size:.1f} {unit}"


def read(text):
    number, unit = text.split()
    return float(number) * UNITS[unit]


class MemoryRows(tools.ToolTest):
    def model(self, **keys):
        folder = self.folder / "llama"
        folder.mkdir(exist_ok=True)
        (folder / "config.json").write_text(json.dumps({
            "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": SHAPE.hidden,
            "intermediate_size": SHAPE.inner, "num_hidden_layers": SHAPE.layers, "num_attention_heads": SHAPE.heads,
            "num_key_value_heads": SHAPE.key_heads, "vocab_size": SHAPE.vocabulary, "max_position_embeddings": 4096,
            "hidden_act": "silu", "rms_norm_eps": 1e-05, "tie_word_embeddings": False, "bos_token_id": 1,
            "eos_token_id": 2} | keys))
        return folder

    def report(self, model, flags):
        """(standard output, notes)"""
        self.plan = self.folder / "x.plan"
        done = tools.start("bowline-compile", model, *flags, *tools.ONE_THREAD, "--no-codegen", "--report", "-o",
                           self.plan)
        text, errors = done.stdout.decode(), done.stderr.decode()
        self.assertEqual(done.returncode, 0, errors)
        return text, [line for line in errors.splitlines() if line.startswith("bowline-compile: note: ")]

    def table(self, strategy):
        """(number of the rank, {row: (formula, plan)}, notes)"""
        text, notes = self.report(self.model(), strategy.flags(SHAPE))
        title = TITLE.search(text)
        self.assertIsNotNone(title, text)
        self.assertEqual(title[1] is not None, strategy.stages > 1)
        rows = {name: (formula, plan) for name, formula, plan in ROW.findall(text[title.end():])}
        return int(title[1] or 0), rows, notes

    def arenas(self):
        """By rank along the pipeline."""
        inspected = json.loads(tools.succeed("bowline-inspect", self.plan, "--json"))
        return [inspected["header"]["arena_bytes"]]

    def test_records_are_those_of_the_formulas(self):
        self.assertEqual(pathlib.Path(RECORDED).read_text(), recorded_text(),
                         f"{RECORDED} is what the unit test of the compiler's formulas reads; write it again: "
                         "python3 test/Execution/memory_rows.py > test/Unit/Driver/memory-rows.json")

    def test_tables(self):
        for name, strategy in STRATEGIES.items():
            with self.subTest(strategy=name):
                number, rows, _ = self.table(strategy)
                rank = Rank(SHAPE, strategy, number)
                expected = at_peak(rank)
                for row, terms in ROWS.items():
                    self.assertEqual(rows[row][0], printed(sum(expected.get(term, 0) for term in terms)), row)
                self.assertEqual(rows["sum"][0], printed(rank.peak()))
                # Rows of the plan add up, and persistent bytes are those of the formula.
                plan = {row: read(cells[1]) for row, cells in rows.items()}
                self.assertAlmostEqual(sum(plan.values()) - plan["sum"], plan["sum"], delta=0.01 * plan["sum"])
                self.assertEqual(rows["sum"][1], printed(self.arenas()[0]))
                # With bf16 the formula counts a shard of the embedding beside the whole one, which a plan has not.
                self.assertAlmostEqual(plan["weights and moments"], rank.weights_and_moments(),
                                       delta=0.02 * rank.weights_and_moments())
                self.assertLess(plan["inputs, outputs, constants, scratch"], 0.06 * plan["sum"])

    def notes(self, *flags, **strategy):
        """The notes on choices for a strategy, without notes of other parts of the compiler."""
        _, notes = self.report(self.model(), [*Strategy(**({"tokens": 32} | strategy)).flags(SHAPE), *flags])
        return [note for note in notes if "docs/memory.md" in note and not note.startswith("bowline-compile: note: memory: ")]

    def test_choices_that_pay_are_passed_over(self):
        self.assertEqual(self.notes(data=2), [])
        self.assertEqual(self.notes(data=4, zero=2, microbatches=4), [])
        self.assertEqual(self.notes(tensor=4, sequence=True, tokens=256), [])
        self.assertEqual(self.notes(data=4, zero=3, recompute="full", **BF16), [])

    def expect(self, notes, pattern):
        self.assertEqual(len(notes), 1, notes)
        self.assertRegex(notes[0], "^bowline-compile: note: " + pattern)

    def test_choices_that_do_not_pay(self):
        size = r"[0-9.]+ [KM]iB"
        self.expect(self.notes(data=2, recompute="full"),
                    rf"--recompute full saves nothing: a rank needs {size} with it and {size} without by the formulas")
        self.expect(self.notes(data=4, zero=2),
                    rf"--zero 2 saves nothing: a rank needs ({size}) with it and \1 without .*; use --zero 1$")
        self.expect(self.notes(tensor=4, sequence=True), rf"--sequence-parallel saves {size} of {size} \([01]\.[0-9] %\)")
        self.expect(self.notes(tensor=4, microbatches=2, dtype="bf16"),
                    rf"--dtype bf16 takes {size} more than f32, which needs {size} ")

    def test_gathers_that_are_hidden_already(self):
        flags = {"data": 4, "zero": 3, "prefetch": 4, **BF16}
        self.expect(self.notes("--link", "bandwidth=1000GB/s,latency=1ns", **flags),
                    r"--prefetch 4 takes [0-9.]+ [KM]iB more than --prefetch 1 .*\([0-9.]+ ms\) is hidden .*; use --prefetch 1$")
        self.assertEqual(self.notes("--link", "bandwidth=1MB/s", **flags), [])

    def test_plans_that_are_not_what_formulas_say(self):
        """A rank of which scratch is a large part."""
        strategy = Strategy(tensor=4, tokens=8)
        _, notes = self.report(self.model(vocab_size=8, num_hidden_layers=1, intermediate_size=8), strategy.flags(SHAPE))
        self.expect([note for note in notes if "docs/memory.md" in note],
                    "memory: the plan needs .*, [0-9]+ % more than the formulas of docs/memory.md, which say ")

    def test_models_and_choices_without_formulas(self):
        line = "\nmemory of a step: no formula of docs/memory.md is for "
        shape = ["--batch", 4, "--seq", 12]
        for model, flags, what in (("gpt2-tiny", [], "layers of gpt2"), ("qwen3-tiny", [], "layers of qwen3"),
                                   ("llama-tied", [], "a head that is the embedding"),
                                   ("llama-tiny", ["--optimizer", "sgd"], "--optimizer sgd"),
                                   ("llama-tiny", ["--recompute", "auto", "--memory-limit", "1GiB"], "--recompute auto"),
                                   ("llama-tiny", ["--mesh", "pp=2", "--microbatches", 4, "--schedule", "zb_h2"],
                                    "--schedule zb_h2")):
            with self.subTest(model=model, flags=flags):
                text, _ = self.report(tools.MODELS / model, [*shape, *flags])
                self.assertIn(line + what + "\n", text)
                self.assertIsNone(TITLE.search(text))
        for model in ("llama-tiny", "mistral-tiny", "qwen2-tiny"):
            with self.subTest(model=model):
                text, _ = self.report(tools.MODELS / model, shape)
                self.assertTrue(TITLE.search(text) or "a head that is the embedding" in text, text)

    def test_nothing_is_compared_without_training(self):
        text, notes = self.report(tools.MODELS / "llama-tiny", ["--mode", "generate", "--seq", 12])
        self.assertNotIn("docs/memory.md", text + "".join(notes))


if __name__ == "__main__":
    tools.main()
