#!/usr/bin/env python3
"""Programs that were edited at random compile, or are refused: nothing crashes or hangs, and plans that are sound run."""

import random
import re
import subprocess

import tools

PHASES = ("graph", "train", "shard", "local", "fuse", "schedule")
STRATEGIES = ([], ["--mesh", "dp=2,tp=2", "--zero", "1", "--sequence-parallel"],
              ["--mesh", "pp=2,dp=2", "--microbatches", "2", "--zero", "3", "--schedule", "gpipe"])
LEVEL = ["--target-cpu", "x86-64-v3"]  # so that every processor has the same programs to edit
EDITS = 2300 if tools.NIGHTLY else 100
SECONDS = 60  # of a command; a tool that takes longer hangs

NUMBER = re.compile(r"(?<![\w%@#.])-?\d+(?![\w.])")
VALUE = re.compile(r"%[\w#]+")
SYMBOL = re.compile(r"@[\w.]+")
WORD = re.compile(r"(?<![%@\w\"])[a-z][a-z_.0-9]+(?!\w)")


def swap(text, draw, pattern):
    """One match becomes a copy of another one."""
    found = [*pattern.finditer(text)]
    if len(found) < 2:
        return text
    here, other = draw.choice(found), draw.choice(found)
    return text[:here.start()] + other[0] + text[here.end():]


def change_number(text, draw):
    found = [*NUMBER.finditer(text)]
    if not found:
        return text
    here = draw.choice(found)
    value = int(here[0])
    other = draw.choice([0, 1, -1, value + 1, value - 1, 2 * value, -value, 1 << 31, (1 << 63) - 1, int(draw.choice(found)[0])])
    return text[:here.start()] + str(other) + text[here.end():]


def change_line(text, draw):
    lines = text.split("\n")
    at, other = draw.randrange(len(lines)), draw.randrange(len(lines))
    kind = draw.choice(("delete", "repeat", "swap", "move"))
    if kind == "delete":
        del lines[at]
    elif kind == "repeat":
        lines.insert(at, lines[at])
    elif kind == "swap":
        lines[at], lines[other] = lines[other], lines[at]
    else:
        lines.insert(other, lines.pop(at))
    return "\n".join(lines)


def delete_characters(text, draw):
    begin = draw.randrange(len(text))
    return text[:begin] + text[begin + draw.randrange(1, 20):]


def edited(text, draw):
    kinds = (change_number, change_number, change_line, change_line, delete_characters,
             lambda text, draw: swap(text, draw, VALUE), lambda text, draw: swap(text, draw, SYMBOL),
             lambda text, draw: swap(text, draw, WORD))
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        text = draw.choice(kinds)(text, draw)
    return text


class IrEdits(tools.ToolTest):
    def attempt(self, name, *arguments):
        """(exit code, messages); a crash or a hang fails the test."""
        try:
            done = tools.start(name, *arguments)
        except subprocess.TimeoutExpired:
            self.fail(f"{name} hangs")
        messages = done.stderr.decode(errors="replace")
        self.assertIn(done.returncode, (0, 1, 4) if name == "bowline-run" else (0, 1), messages)
        if done.returncode != 0:
            self.assertIn("error: ", messages)
        return done.returncode, messages

    def try_program(self, program, phase):
        """Whether it compiled, and whether it ran."""
        plan = self.folder / "x.plan"
        code, _ = self.attempt("bowline-compile", program, "--compile-from", phase, "--memory-limit", "64MiB",
                               *tools.ONE_THREAD, "-o", plan)
        if code != 0:
            return False, False
        is_sound = self.attempt("bowline-check", plan)[0] == 0
        code, messages = self.attempt("bowline-run", plan, "--data", tools.TOKENS, "--steps", 2, "--quiet")
        self.assertTrue(is_sound or code == 1, f"it runs, but bowline-check refuses it: {messages}")
        return True, code == 0

    def test_programs_that_crashed(self):
        program = self.folder / "edited.mlir"
        for strategy, phase, old, new in (
                (1, "fuse", r"(\"matmul\" config \{[^}]*)batch = 1 : i64", r"\1init = 1 : i64"),
                (2, "train", "accumulator of @layers.0.attn.wv ", "accumulator of @layers.0.attn_norm ")):
            with self.subTest(phase=phase, new=new):
                text, count = re.subn(old, new, self.program(strategy, phase).read_text(), count=1)
                self.assertEqual(count, 1)
                program.write_text(text)
                self.try_program(program, phase)

    def program(self, strategy, phase):
        path = self.folder / f"{strategy}-{phase}.mlir"
        tools.succeed("bowline-compile", tools.MODELS / "llama-tiny", "--mode", "train", "--batch", 4, "--seq", 6,
                      *tools.ONE_THREAD, *LEVEL, *STRATEGIES[strategy], "--compile-to", phase, "-o", path)
        return path

    def test_edited_programs(self):
        tools.TIMEOUT_SECONDS = SECONDS
        programs = {self.program(strategy, phase): phase for strategy in range(len(STRATEGIES)) for phase in PHASES}
        compiled = ran = 0
        for number in range(EDITS):
            draw = random.Random(f"{tools.TEST_SEED} {number}")
            path, phase = draw.choice([*programs.items()])
            text = path.read_text()
            program = self.folder / "edited.mlir"
            program.write_text(edited(text, draw))
            with self.subTest(number=number, seed=tools.TEST_SEED, phase=phase, program=path.name):
                results = self.try_program(program, phase)
                compiled, ran = compiled + results[0], ran + results[1]
        print(f"{EDITS} edits: {compiled} compiled, {ran} ran", flush=True)
        # Edits that all tools refuse would try the parser alone.
        self.assertGreater(ran, EDITS // 20)


if __name__ == "__main__":
    tools.main()
