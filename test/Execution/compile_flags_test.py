#!/usr/bin/env python3
"""Every flag of `bowline compile` takes effect, or is refused by name, from whatever phase a compilation goes on."""

import json
import pathlib
import re
import shutil
import tempfile

import tools

PHASES = ["input", "graph", "train", "shard", "local", "fuse", "schedule", "codegen", "hoist", "overlap", "memory"]

# Programs to go on with, by name.
PROGRAMS = {
    "one": ["llama-tiny", "--batch", "4", "--seq", "8"],
    "ranks": ["llama-tiny", "--batch", "4", "--seq", "8", "--mesh", "dp=2,tp=2"],
    "deep": ["llama-tied", "--batch", "4", "--seq", "8"],
    "rows": ["llama-tied", "--batch", "4", "--seq", "8", "--mesh", "pp=2,dp=2", "--microbatches", "2", "--schedule",
             "gpipe"],
    "parts": ["llama-tiny", "--batch", "4", "--seq", "8", "--microbatches", "2"],
    "code": ["llama-tiny", "--mode", "generate", "--seq", "4"],
    "text": ["llama-tiny", "--mode", "generate", "--seq", "8"],
}
LEVEL = ["--target-cpu", "x86-64-v3"]

COSINE = ["--lr-schedule", "cosine", "--decay-steps"]
PIPELINE = ["--mesh", "pp=2", "--microbatches", "4"]

# For each flag a program, arguments with it, the same arguments without it or with another value, and the first phase
# from which it is too late; None: never.
FLAGS = {
    "--mode": ("parts", ["--mode", "generate"], [], "fuse"),
    "--batch": ("one", ["--batch", "4"], [], "input"),
    "--seq": ("one", ["--seq", "8"], [], "input"),
    "--dtype": ("one", ["--dtype", "bf16"], [], "train"),
    "--strategy": ("one", ["--strategy", "{folder}/dp.mlir"], [], "train"),
    "--mesh": ("one", ["--mesh", "dp=2"], [], "train"),
    "--microbatches": ("one", ["--microbatches", "2"], [], "train"),
    "--sequence-parallel": ("ranks", ["--sequence-parallel"], [], "shard"),
    "--zero": ("ranks", ["--zero", "1"], [], "local"),
    "--zero-axis": ("ranks", ["--zero", "1", "--zero-axis", "tp"], ["--zero", "1"], "local"),
    "--prefetch": ("ranks", ["--zero", "3", "--prefetch", "3"], ["--zero", "3"], "local"),
    "--zero-once": ("ranks", ["--zero", "3", "--zero-once"], ["--zero", "3"], "local"),
    "--zero-each": ("rows", ["--zero", "3", "--zero-each"], ["--zero", "3"], "local"),
    "--schedule": ("deep", [*PIPELINE, "--schedule", "gpipe"], PIPELINE, "train"),
    "--stages": ("deep", [*PIPELINE, "--stages", "[0],[1,2]"], PIPELINE, "train"),
    "--recompute": ("one", ["--recompute", "full"], [], "fuse"),
    "--bucket-bytes": ("ranks", ["--bucket-bytes", "0"], [], "local"),
    "--overlap-chunks": ("ranks", ["--overlap-chunks", "2"], [], "local"),
    "--optimizer": ("one", ["--optimizer", "sgd"], [], "train"),
    "--lr": ("one", ["--lr", "0.1"], [], "train"),
    "--beta1": ("one", ["--beta1", "0.5"], [], "train"),
    "--beta2": ("one", ["--beta2", "0.5"], [], "train"),
    "--eps": ("one", ["--eps", "0.1"], [], "train"),
    "--weight-decay": ("one", ["--weight-decay", "0.5"], [], "train"),
    "--clip-norm": ("one", ["--clip-norm", "0.5"], [], "train"),
    "--lr-schedule": ("one", [*COSINE, "9"], [], "train"),
    "--warmup-steps": ("one", ["--warmup-steps", "3"], [], "train"),
    "--decay-steps": ("one", [*COSINE, "9"], [*COSINE, "5"], "train"),
    "--min-lr": ("one", [*COSINE, "9", "--min-lr", "1e-4"], [*COSINE, "9"], "train"),
    "--seed": ("one", ["--seed", "3"], [], "graph"),
    "--f32-products": ("one", ["--f32-products", "bf16x6"], [], "fuse"),
    "--no-codegen": ("code", ["--no-codegen"], [], "codegen"),
    "--kernel-cache": ("code", ["--kernel-cache", "{out}/cache"], [], "codegen"),
    "--kernel-listing": ("code", ["--kernel-listing", "{out}/listing"], [], "codegen"),
    "--link": ("ranks", ["--link", "bandwidth=1kB/s,latency=1s"], [], "overlap"),
    "--runs-in-flight": ("one", ["--runs-in-flight", "2"], [], None),
    "--memory-limit": ("one", ["--memory-limit", "1KiB"], [], None),
    "--buckets": ("one", ["--buckets", "1,8"], [], "input"),
    "--max-batch": ("one", ["--max-batch", "2"], [], "input"),
    "--max-context": ("one", ["--max-context", "8"], [], "input"),
    "--block-tokens": ("one", ["--block-tokens", "4"], [], "input"),
    "--kv-blocks": ("one", ["--kv-blocks", "9"], [], "input"),
    "--kv-memory": ("one", ["--kv-memory", "1MiB"], [], "input"),
    "--kv-dtype": ("one", ["--kv-dtype", "bf16"], [], "input"),
    "--with-logits": ("one", ["--with-logits"], [], "input"),
    "--weights-dtype": ("one", ["--weights-dtype", "f32"], [], "input"),
    "--map-weights": ("text", ["--map-weights"], [], "hoist"),
    "--report": ("one", ["--report"], [], None),
    "--timing": ("one", ["--timing"], [], None),
    "--remarks": ("one", ["--remarks"], [], "memory"),
    "--mlir-print-ir-after-all": ("one", ["--mlir-print-ir-after-all"], [], "memory"),
    "--mlir-print-ir-after-change": ("one", ["--mlir-print-ir-after-change"], [], "memory"),
    "--compile-to": ("one", ["--compile-to", "memory"], [], None),
    "--disable-step": ("one", ["--disable-step", "merge-fusions"], [], "fuse"),
    # Programs state these settings themselves: from phase graph on, a flag may only repeat them.
    "--target": ("one", ["--target", "discrete"], [], "graph"),
    "--target-cpu": ("one", ["--target-cpu", "x86-64-v2"], [], "graph"),
    "--cuda-arch": ("one", ["--target", "cuda", "--cuda-arch", "sm_80"], ["--target", "cuda"], "graph"),
    "--threads": ("one", ["--threads", "2"], [], "graph"),
}
RANKS = 'mesh @mesh ["dp", "tp"] [2, 2]'
STAGES = 'mesh @mesh ["pp"] [2]'
# Of each line of a strategy: the lines beside it, the line, another one instead, and the first phase from which that is
# too late.
LINES = {
    "mesh": ([], RANKS, 'mesh @mesh ["dp", "tp"] [4, 2]', "train"),
    "batch": ([RANKS], 'batch "dp"', 'batch "dp", "tp"', "train"),
    "tensor_parallel": ([RANKS, 'batch "dp"'], 'tensor_parallel "tp"', 'shard "*norm*" as <[{"tp"}]>', "train"),
    "shard": ([RANKS], 'shard "*norm*" as <[{"tp"}]>', 'shard "*norm*" as <[{"dp"}]>', "shard"),
    "zero": ([RANKS], "zero level 1", "zero level 2", "local"),
    "sequence_parallel": ([RANKS, 'batch "dp"'], 'sequence_parallel "tp"', 'shard "*norm*" as <[{"tp"}]>', "shard"),
    "microbatches": ([STAGES], "microbatches 2", "microbatches 4", "train"),
    "stages": ([STAGES, "microbatches 2"], 'stages "pp" split "[0],[1..2]"', 'stages "pp" split "[0..1],[2]"', "train"),
    "schedule": ([STAGES, "microbatches 4"], 'schedule "gpipe"', 'schedule "1f1b"', "train"),
    "recompute": ([RANKS], 'recompute "full"', 'recompute "selective"', "fuse"),
    "bucket_bytes": ([RANKS], "bucket_bytes 0", "bucket_bytes 8192", "local"),
    "overlap_chunks": ([RANKS], "overlap_chunks 2", "overlap_chunks 4", "local"),
}

# -o names the result and --compile-from the phase; --verify compares and changes nothing; --verify-each
# compiles something else beside, from an early phase.
OTHERS = {"--help", "--output", "--compile-from", "--verify", "--verify-each"}


class CompileFlags(tools.ToolTest):
    def program(self, name, phase):
        text = self.folder / f"{name}.{phase}.mlir"
        if not text.exists():
            model, *flags = PROGRAMS[name]
            tools.succeed("bowline-compile", tools.MODELS / model, *flags, *LEVEL, *tools.ONE_THREAD, "--no-codegen",
                          f"--compile-to={phase}", "-o", text)
        return text

    def outcome(self, name, phase, arguments, late=None):
        """All that a compilation leaves: its messages, and its files."""
        out = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        given = [argument.format(folder=self.folder, out=out) for argument in arguments]
        flags = list(given)
        # Programs do not say their mode, nor do those of the first phase name their target.
        if "generate" in PROGRAMS[name] and PHASES.index(phase) < PHASES.index("fuse"):
            flags += ["--mode", "generate"]
        if phase == "input":
            flags += [] if "--target-cpu" in flags or "--target" in flags else LEVEL
            flags += [] if "--threads" in flags else tools.ONE_THREAD
        # A compilation to phase train shows flags that are read up to it. Generating code is slow, and few flags concern it.
        if late == "train" and phase in ("input", "graph"):
            flags += ["--compile-to=train"]
        elif PHASES.index(phase) < PHASES.index("codegen") and name != "code":
            flags += ["--no-codegen"]
        done = tools.start("bowline-compile", self.program(name, phase), "--compile-from", phase, *flags, "-o",
                           out / "x.plan")
        self.assertIn(done.returncode, (0, 1), done.stderr)
        files = {file.name: file.read_bytes() for file in out.glob("*") if file.is_file()}
        shutil.rmtree(out)
        # A message may have the arguments in it, and times.
        return done.returncode, files, done.stdout, len(done.stderr.splitlines()), done.stderr.decode()

    def test_every_flag_from_every_phase(self):
        help_text = tools.succeed("bowline-compile", "--help").decode().split("\n\nPhases:")[0]
        self.assertEqual(set(re.findall(r"^  (?:-\w,)?(--[\w-]+)", help_text, re.M)), FLAGS.keys() | OTHERS)
        (self.folder / "dp.mlir").write_text('dist.strategy @s {\n  mesh @m ["dp"] [2]\n}\n')
        usual = {}
        for flag, (name, with_it, without, late) in FLAGS.items():
            # That it is too late is asked for in order of the phases: of those between, nightly.
            first_late = PHASES.index(late) if late is not None else len(PHASES)
            some = {PHASES[0], PHASES[first_late - 1], *PHASES[first_late:first_late + 1], PHASES[-1]}
            for phase in PHASES if tools.NIGHTLY else sorted(some, key=PHASES.index):
                with self.subTest(flag=flag, phase=phase):
                    got = self.outcome(name, phase, with_it, late)
                    if late is not None and PHASES.index(phase) >= PHASES.index(late):
                        self.assertEqual((got[0], got[1]), (1, {}), "was taken, and nothing reads it any more")
                        given = [argument for argument in with_it if argument.startswith("--")]
                        self.assertRegex(got[4], rf"(?:{'|'.join(given)})\b")
                        self.assertRegex(got[4], ": the program of .* is past phase '|the program was compiled ")
                        continue
                    self.assertNotIn("is past phase", got[4])
                    key = (name, phase, late, *without)
                    if key not in usual:
                        usual[key] = self.outcome(name, phase, without, late)
                        self.assertEqual(usual[key][0], 0, usual[key][4])
                    if flag == "--kernel-cache":  # a folder that was not there
                        continue
                    self.assertTrue(got[:4] != usual[key][:4], "has no effect")

    def printed(self, lines, phase):
        """A program of so many lines, printed after the phase."""
        strategy, program = self.folder / "lines.mlir", self.folder / f"lines.{phase}.mlir"
        strategy.write_text("dist.strategy @s {\n" + "".join(f"  {line}\n" for line in lines) + "}\n")
        tools.succeed("bowline-compile", tools.MODELS / "llama-tied", "--batch", 8, "--seq", 8, *tools.ONE_THREAD,
                      "--strategy", strategy, "--no-codegen", f"--compile-to={phase}", "-o", program)
        return program

    def go_on(self, program, phase, old, new):
        """Compiles a program in which somebody changed the line."""
        text = program.read_text()
        self.assertEqual(len(re.findall(rf"^ *{re.escape(old)} loc", text, re.M)), 1, text[:2000])
        edited = self.folder / "edited.mlir"
        edited.write_text(re.sub(rf"^( *){re.escape(old)} (loc.*)$",
                                 lambda match: f"{match[1]}{new} {match[2]}" if new else "", text, flags=re.M))
        plan = self.folder / "edited.plan"
        plan.unlink(missing_ok=True)
        late = PHASES.index(phase) >= PHASES.index("codegen")
        done = tools.start("bowline-compile", edited, "--compile-from", phase, *([] if late else ["--no-codegen"]), "-o",
                           plan)
        return done.returncode, done.stderr.decode(), plan.read_bytes() if plan.exists() else None

    def test_every_line_of_a_strategy_that_is_changed_later(self):
        refused = tools.start("bowline-compile", self.unknown_line(), "--threads", 1, "-o", "x").stderr.decode()
        names = re.search(r"the lines of a strategy are ([\w, ]+)", refused)[1].split(", ")
        self.assertEqual(LINES.keys(), set(names))
        for name, (beside, line, other, late) in LINES.items():
            before = PHASES[PHASES.index(late) - 1]
            for phase in (before, late, "overlap"):
                with self.subTest(line=line, phase=phase):
                    program = self.printed([*beside, line], phase)
                    code, said, plan = self.go_on(program, phase, line, other)
                    if phase == before:
                        self.assertEqual(code, 0, said)
                        self.assertTrue(plan != self.go_on(program, phase, line, line)[2], "has no effect")
                        continue
                    self.assertEqual((code, plan), (1, None), "was taken, and nothing reads it any more")
                    if line.split()[0] == other.split()[0]:
                        self.assertRegex(said, rf"lines.mlir:\d+:3: the line '{re.escape(other)}' of .*/edited.mlir was "
                                               rf"'{re.escape(line)}' in phase '{late}', the last one that reads it; "
                                               f"change it back, or change .* --compile-to={before} or an earlier")

    def unknown_line(self):
        program = self.folder / "unknown.mlir"
        program.write_text('dist.strategy @s {\n  unheard_of "x"\n}\n')
        return program

    def test_lines_that_come_and_go_later(self):
        program = self.printed([RANKS, "zero level 1", "bucket_bytes 0"], "overlap")
        plan = self.folder / "x.plan"
        tools.succeed("bowline-compile", program, "--compile-from=overlap", "-o", plan)  # as it was printed
        code, said, _ = self.go_on(program, "overlap", "zero level 1", "microbatches 4")
        self.assertEqual(code, 1)
        self.assertRegex(said, "the line 'microbatches 4' of .*/edited.mlir was not there in phase 'train', .*; remove it, or change")
        code, said, _ = self.go_on(program, "overlap", "zero level 1", "")
        self.assertRegex(said, "the strategy of .*/edited.mlir has no line 'zero level 1' any more, which it had in phase 'local'")
        # A whole one, where there was none.
        program = self.program("one", "overlap")
        text = program.read_text()
        program = self.folder / "added.mlir"
        program.write_text(text.replace("  module", "  dist.strategy @s { microbatches 2 }\n  module", 1))
        done = tools.start("bowline-compile", program, "--compile-from=overlap", "-o", plan)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr.decode(), r"added.mlir:\d+:\d+: the line 'microbatches 2' of .* was not there")
        # Text of somebody else.
        program.write_text(re.sub(r"bowline.strategy = \[.*?\]", "bowline.strategy = [1]", text))
        done = tools.start("bowline-compile", program, "--compile-from=overlap", "-o", plan)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"'bowline.strategy' is no list of the lines of a strategy", done.stderr)
        # An early phase takes the change, and later phases compare with the program that it wrote.
        early = self.printed([RANKS, "zero level 1"], "shard")
        early.write_text(early.read_text().replace("zero level 1 loc", "zero level 3 loc"))
        program = self.folder / "later.mlir"
        tools.succeed("bowline-compile", early, "--compile-from=shard", "--no-codegen", "--compile-to=fuse", "-o", program)
        tools.succeed("bowline-compile", program, "--compile-from=fuse", "--no-codegen", "-o", plan)

    def test_what_a_program_says_may_be_said_again(self):
        plan = self.folder / "x.plan"
        for phase in PHASES[1:]:
            text = self.program("one", phase)
            tools.succeed("bowline-compile", text, "--compile-from", phase, "-o", plan)
            said = plan.read_bytes()
            tools.succeed("bowline-compile", text, "--compile-from", phase, "--target", "cpu", *LEVEL,
                          *tools.ONE_THREAD, "-o", plan)
            self.assertEqual(plan.read_bytes(), said)
        card = self.folder / "card.mlir"
        tools.succeed("bowline-compile", tools.MODELS / "llama-tiny", "--batch", 4, "--seq", 8, "--target", "cuda",
                      "--cuda-arch", "sm_80", "--compile-to=local", "-o", card)
        tools.succeed("bowline-compile", card, "--compile-from=local", "-o", plan)
        described = json.loads(tools.succeed("bowline-inspect", plan, "--json"))
        self.assertEqual(described["header"]["target"], "cuda nvptx64 sm_80")

    def test_a_seed_stays_with_its_program(self):
        model = [tools.MODELS / "llama-tiny", "--batch", 4, "--seq", 8, *tools.ONE_THREAD, "--seed", 7]
        text, straight, later = (self.folder / name for name in ("x.mlir", "straight.plan", "later.plan"))
        tools.succeed("bowline-compile", *model, "-o", straight)
        tools.succeed("bowline-compile", *model, "--compile-to=graph", "-o", text)
        tools.succeed("bowline-compile", text, "--compile-from=graph", "-o", later)
        self.assertEqual(later.read_bytes(), straight.read_bytes())

    def test_of_a_late_program_it_is_known_what_it_does(self):
        for name, flag in (("text", ["--runs-in-flight", 2]), ("one", ["--map-weights"])):
            done = tools.start("bowline-compile", self.program(name, "schedule"), "--compile-from=schedule", *flag, "-o",
                               self.folder / "x.plan")
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr.decode(), rf"{flag[0]}: the program of .*; leave it out")


if __name__ == "__main__":
    tools.main()
