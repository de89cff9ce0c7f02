#!/usr/bin/env python3
"""A strategy is the same plan, byte for byte, whether flags or a file say it, and each of its lines changes the plan."""

import re

import tools

MODEL = tools.MODELS / "llama-tiny"
TABLE = "# each stage does all forwards first\n0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n"


def mesh(**axes):
    names = ", ".join(f'"{name}"' for name in axes)
    return f"mesh @mesh [{names}] [{', '.join(map(str, axes.values()))}]"


# Of three layers, so that stages need not have as many each.
THREE_LAYERS = {"model": tools.MODELS / "llama-tied"}

# Of each case: flags, lines of a file that say the same, the indices of lines without which the plan is another one, and
# other arguments that the case needs. A line that only names the usual axes, or only serves as a reference for others,
# changes nothing by itself. Where no flag says a line, the flags are None.
CASES = {
    "axes": (["--mesh", "dp=2,tp=2"],
             [mesh(dp=2, tp=2), 'batch "dp"', 'tensor_parallel "tp"'], []),
    "other names": (["--mesh", "dp=2,tp=2"], [mesh(dp=2, tp=2)], [0]),
    # The sharding that tensor parallelism chooses by itself, once by keys and once by symbols.
    "patterns": (["--mesh", "tp=2"],
                 [mesh(tp=2),
                  'shard "{model.embed_tokens,lm_head}.weight" as <[{"tp"}, {}]>',
                  'shard "model.layers.*.self_attn.{q,k,v}_proj.weight" as <[{"tp"}, {}]>',
                  'shard "layers.[0-1].attn.wo" as <[{}, {"tp"}]>',
                  'shard "layers.?.mlp.w_{gate,up}" as <[{"tp"}, {}]>',
                  'shard "*.mlp.down_proj.weight" as <[{}, {"tp"}]>'], []),
    "microbatches": (["--microbatches", "3"], ["microbatches 3"], [0]),
    "recompute": (["--recompute", "full"], ['recompute "full"'], [0]),
    "one rank": (["--microbatches", "2", "--recompute", "selective"],
                 ['recompute "selective"', "microbatches 2"], [0, 1]),
    "stages": (["--mesh", "pp=2", "--stages", "[0],[1..2]", "--microbatches", "2"],
               [mesh(pp=2), 'stages "pp" split "[0],[1..2]"', "microbatches 2"], [1, 2], THREE_LAYERS),
    "schedule": (["--mesh", "dp=2,pp=2", "--schedule", "gpipe", "--microbatches", "3"],
                 [mesh(dp=2, pp=2), 'schedule "gpipe"', "microbatches 3"], [1, 2]),
    "divided backward passes": (["--mesh", "pp=2", "--schedule", "zb_h1", "--microbatches", "3"],
                                [mesh(pp=2), 'schedule "zb_h1"', "microbatches 3"], [1, 2]),
    "recompute in stages": (["--mesh", "pp=2", "--recompute", "selective", "--microbatches", "3"],
                            [mesh(pp=2), 'recompute "selective"', "microbatches 3"], [1, 2]),
    "zero": (["--mesh", "dp=2", "--zero", "1"], [mesh(dp=2), "zero level 1"], [1]),
    "gradients": (["--mesh", "dp=2", "--zero", "2"], [mesh(dp=2), "zero level 2"], [1]),
    "axis of zero": (["--mesh", "dp=2,fsdp=3", "--zero", "2", "--zero-axis", "dp"],
                     [mesh(dp=2, fsdp=3), 'zero level 2 axis "dp"'], [1]),
    "prefetch": (["--mesh", "dp=2", "--zero", "3", "--prefetch", "2"],
                 [mesh(dp=2), "zero level 3 prefetch 2"], [1]),
    "once": (["--mesh", "dp=2", "--zero", "3", "--zero-once", "--microbatches", "3"],
             [mesh(dp=2), "zero level 3 once", "microbatches 3"], [1]),
    "each": (["--mesh", "pp=2,dp=2", "--zero", "3", "--zero-each", "--microbatches", "3", "--schedule", "gpipe"],
             [mesh(pp=2, dp=2), "zero level 3 each", "microbatches 3", 'schedule "gpipe"'], [1, 2]),
    "sequence": (["--mesh", "dp=3,tp=2", "--sequence-parallel"],
                 [mesh(dp=3, tp=2), 'sequence_parallel "tp"'], [1]),
    "buckets": (["--mesh", "dp=2", "--bucket-bytes", "8KiB"], [mesh(dp=2), "bucket_bytes 8192"], [1]),
    "chunks": (["--mesh", "tp=2", "--overlap-chunks", "2"], [mesh(tp=2), "overlap_chunks 2"], [1]),
    "chosen chunks": (["--mesh", "tp=2", "--overlap-chunks", "auto", "--link", "bandwidth=20MB/s,latency=1us"],
                      [mesh(tp=2), "overlap_chunks auto"], [1],
                      {"model": tools.TEST_DIR.parent / "examples/first-model", "batch": 4, "seq": 128}),
    "all": (["--mesh", "pp=2,dp=2,tp=2", "--sequence-parallel", "--zero", "3", "--prefetch", "2", "--zero-axis", "dp",
             "--schedule", "gpipe", "--stages", "[0..0],[1..2]", "--microbatches", "3", "--recompute", "selective",
             "--bucket-bytes", "4KiB", "--overlap-chunks", "2"],
            [mesh(pp=2, dp=2, tp=2), 'sequence_parallel "tp"', 'zero level 3 axis "dp" prefetch 2', 'schedule "gpipe"',
             'stages "pp" split "[0..0],[1..2]"', "microbatches 3", 'recompute "selective"', "bucket_bytes 4096",
             "overlap_chunks 2"], [1, 2, 3, 4, 5, 6, 7, 8], {"batch": 12, **THREE_LAYERS}),
    "order of axes": (None, [mesh(dp=2, fsdp=3), 'batch "fsdp", "dp"'], [1]),
    "axis of projections": (None, [mesh(model=2), 'tensor_parallel "model"',
                                   'shard "lm_head.weight" as <[{"model"}, {}]>'], [1]),
    "one layer stays whole": (None, [mesh(tp=2), 'shard "model.layers.0.mlp.*" as <[{}, {}]>'], [1]),
    "table in the text": (None, [mesh(pp=2), "microbatches 2",
                                 'schedule "two.csv" table "' + TABLE.replace("\n", "\\0A") + '"'], [2]),
}
# Optional parts of lines: each line is tried with the part and without it.
PARTS = [
    ("zero level 2", ' axis "dp"', [mesh(dp=2, fsdp=3)]),
    ("zero level 3", " prefetch 2", [mesh(dp=2)]),
    ('stages "pp"', ' split "[0],[1..2]"', [mesh(pp=2)]),
    ('schedule "two.csv"', ' table "' + TABLE.replace("\n", "\\0A") + '"', [mesh(pp=2), "microbatches 2"]),
]
# Flags that are no part of a strategy go with the file too.
MACHINE_FLAGS = ("--link", "--memory-limit")


class StrategyFile(tools.ToolTest):
    def plan(self, *flags, model=MODEL, batch=6, seq=8):
        path = self.folder / "x.plan"
        tools.succeed("bowline-compile", model, "--batch", batch, "--seq", seq, "--threads", 1, "--no-codegen", *flags,
                      "-o", path)
        return path.read_bytes()

    def file(self, lines, name="strategy.mlir", symbol="any"):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"dist.strategy @{symbol} {{\n" + "".join(f"  {line}\n" for line in lines) + "}\n")
        return path

    def compare(self, flags, lines, **sizes):
        """The plan of both, which must be one, and the flags that a file does not replace."""
        if flags is None:
            return self.plan("--strategy", self.file(lines), **sizes), []
        by_flags = self.plan(*flags, **sizes)
        machine = [word for at, flag in enumerate(flags) if flag in MACHINE_FLAGS for word in flags[at:at + 2]]
        by_file = self.plan("--strategy", self.file(lines), *machine, **sizes)
        self.assertTrue(by_file == by_flags, f"{flags} and {lines} give different plans")
        return by_file, machine

    def assertSame(self, plan, other):
        self.assertTrue(plan == other, "the plans differ")

    def test_flags_and_files_give_the_same_bytes(self):
        for name, (flags, lines, telling, *more) in CASES.items():
            sizes = more[0] if more else {}
            with self.subTest(name):
                plan, machine = self.compare(flags, lines, **sizes)
                for line in telling:
                    without = lines[:line] + lines[line + 1:]
                    other = self.plan("--strategy", self.file(without), *machine, **sizes)
                    self.assertTrue(other != plan, f"'{lines[line]}' changes nothing")

    def test_axes_may_have_any_name_in_a_file(self):
        lines = [mesh(data=2, model=2), 'batch "data"', 'tensor_parallel "model"', 'sequence_parallel "model"']
        tools.succeed("bowline-compile", MODEL, "--batch", 6, "--seq", 8, "--strategy", self.file(lines), "--no-codegen",
                      "-o", self.folder / "named.plan")
        text = tools.succeed("bowline-check", self.folder / "named.plan").decode()
        self.assertIn("4 (data=2, model=2)", text)

    def test_names_of_strategies_and_meshes_are_free(self):
        """Symbols of a parameter, an entry, a function and a mesh among them."""
        plan = self.plan("--mesh", "dp=2")
        for symbol, own in (("train_step", "mesh"), ("embed", "lm_head"), ("mesh", "mesh"), ("init", "strategy"),
                            ("any", "embed"), ("strategy", "train_step")):
            with self.subTest(symbol=symbol, mesh=own):
                line = mesh(dp=2).replace("@mesh", f"@{own}")
                self.assertSame(self.plan("--strategy", self.file([line], symbol=symbol)), plan)

    def test_generation_has_no_batch_to_divide(self):
        result = tools.start("bowline-compile", MODEL, "--mode", "generate", "--seq", 8, "--mesh", "dp=2", "-o",
                             self.folder / "x.plan")
        self.assertEqual(result.returncode, 1)
        self.assertIn(b'has "dp" of 2 ranks for the batch, which --mode generate does not divide; give it one rank',
                      result.stderr)

    def test_every_line_changes_a_plan_by_itself(self):
        refused = tools.start("bowline-compile", MODEL, "--batch", 6, "--seq", 8, "--strategy",
                              self.file([mesh(dp=2), 'unheard_of "x"']), "-o", self.folder / "x.plan").stderr.decode()
        names = re.search(r"the lines of a strategy are ([\w, ]+)", refused)[1].split(", ")
        told = {lines[at].split()[0] for _, lines, telling, *_ in CASES.values() for at in telling}
        self.assertEqual(told, set(names))

    def test_every_part_of_a_line_changes_a_plan(self):
        for line, part, others in PARTS:
            with self.subTest(line + part):
                plan = self.plan("--strategy", self.file([*others, line + part]), **THREE_LAYERS)
                if ".csv" in line:  # without its text the file is looked for, and is another one
                    (self.folder / "two.csv").write_text("0F0,0B0,0F1,0B1\n1F0,1B0,1F1,1B1\n")
                self.assertTrue(self.plan("--strategy", self.file([*others, line]), **THREE_LAYERS) != plan)

    def test_shards_of_parameters_whose_sizes_are_padded(self):
        """257 words and 53 columns are padded for the parameters' own axes, and not for those that their gradients
        would have from other shards."""
        for axes, line in ((dict(dp=2, tp=2), 'shard "*norm*" as <[{"tp"}]>'),
                           (dict(tp=2), 'shard "model.embed_tokens.weight" as <[{}, {"tp"}]>'),
                           (dict(dp=2, tp=2), 'shard "lm_head.weight" as <[{"dp"}, {"tp"}]>'),
                           (dict(dp=2, tp=2), 'shard "*.o_proj.weight" as <[{"dp"}, {"tp"}]>')):
            with self.subTest(line):
                result = tools.start("bowline-compile", MODEL, "--batch", 6, "--seq", 8, "--threads", 1, "--no-codegen",
                                   "--strategy", self.file([mesh(**axes), line]), "--verify-each=equiv",
                                   "-o", self.folder / "x.plan")
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertIn(b"kept what a model of this structure", result.stderr)
        # Columns that one matrix has whole and the other one in pieces would need zeros that no layout says.
        result = tools.start("bowline-compile", MODEL, "--batch", 6, "--seq", 8, "--threads", 1, "--no-codegen",
                           "--strategy", self.file([mesh(dp=2, tp=2), 'shard "*.w_down" as <[{"dp"}, {}]>']),
                           "-o", self.folder / "x.plan")
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"'layers.0.mlp.w_down': dimension 1 of 53 is whole on every rank, and 54 where", result.stderr)

    def test_what_the_memory_limit_chooses(self):
        flags = ["--recompute", "auto", "--memory-limit", "740KiB"]
        plan, machine = self.compare(flags, ['recompute "auto"'])
        self.assertTrue(self.plan() != plan)

    def test_a_table_is_read_from_the_folder_of_its_file(self):
        (self.folder / "tables").mkdir()
        (self.folder / "tables" / "two.csv").write_text(TABLE)
        by_flags = self.plan("--mesh", "pp=2", "--microbatches", 2, "--schedule", self.folder / "tables" / "two.csv",
                             "--stages", "[0],[1..2]", **THREE_LAYERS)
        lines = [mesh(pp=2), "microbatches 2", 'schedule "two.csv"', 'stages "pp" split "[0],[1..2]"']
        self.assertSame(self.plan("--strategy", self.file(lines, "tables/strategy.mlir"), **THREE_LAYERS), by_flags)
        # Written into the file, it needs no other one.
        text = TABLE.replace("\n", "\\0A")
        lines[2] = f'schedule "two.csv" table "{text}"'
        self.assertSame(self.plan("--strategy", self.file(lines), **THREE_LAYERS), by_flags)
        for line in (2, 3):
            without = self.file(lines[:line] + lines[line + 1:])
            self.assertTrue(self.plan("--strategy", without, **THREE_LAYERS) != by_flags, lines[line])

    def test_flags_complete_a_file(self):
        whole = self.plan("--mesh", "dp=2,tp=2", "--zero", 1, "--microbatches", 3, "--sequence-parallel")
        file = self.file([mesh(dp=2, tp=2), "microbatches 3"])
        self.assertSame(self.plan("--strategy", file, "--zero", 1, "--sequence-parallel"), whole)
        # Said twice is said once.
        self.assertSame(self.plan("--strategy", file, "--zero", 1, "--sequence-parallel", "--mesh", "dp=2,tp=2",
                                   "--microbatches", 3), whole)

    def test_a_model_may_bring_its_strategy(self):
        model, plan = self.folder / "model.mlir", self.folder / "x.plan"
        flags = ["--mesh", "dp=2", "--zero", 1, "--microbatches", 3]
        sizes = ["--batch", 6, "--seq", 8, "--threads", 1, "--no-codegen"]
        tools.succeed("bowline-compile", MODEL, *sizes, *flags, "--compile-to=input", "-o", model)
        text = model.read_text()
        self.assertIn("zero level 1", text)
        tools.succeed("bowline-compile", model, "--threads", 1, "--no-codegen", "-o", plan)
        brought = plan.read_bytes()
        self.assertSame(brought, self.plan(*flags))
        model.write_text(text.replace("dist.strategy @strategy", "dist.strategy @train_step"))
        tools.succeed("bowline-compile", model, "--threads", 1, "--no-codegen", "-o", plan)
        self.assertSame(plan.read_bytes(), brought)
        self.assertTrue(brought != self.plan())


if __name__ == "__main__":
    tools.main()
