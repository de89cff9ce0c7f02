#!/usr/bin/env python3
"""Compiled plans that somebody edits: the checker refuses what could crash, race, hang or drift, and so does a run.

Plans are edited as text. `translate` keeps their certificates; `certify` has the compiler write new ones, which says that
the edit was meant, and not that it is sound.
"""

import re

import tools

ONE = ["--batch", "4", "--seq", "32"]
PIPELINE = [*ONE[2:], "--batch", "8", "--mesh", "pp=2,dp=2", "--schedule", "1f1b", "--microbatches", "2"]


def without_certificates(text):
    return re.sub(r" (order|values) \[[^\]]*\]", "", text)


class PlanEdits(tools.ToolTest):
    texts = {}

    def text(self, *flags):
        """A plan as text."""
        if flags not in self.texts:
            plan = self.folder / "base.plan"
            tools.succeed("bowline-compile", tools.MODELS / "llama-tiny", *flags, *tools.ONE_THREAD, "-o", plan)
            self.texts[flags] = tools.succeed("bowline-translate", "--plan-to-mlir", plan).decode()
        return self.texts[flags]

    def edit(self, text, pattern, replacement, count=1):
        edited, times = re.subn(pattern, replacement, text, count=count, flags=re.MULTILINE)
        self.assertGreater(times, 0, pattern)
        return edited

    def write(self, text):
        file = self.folder / "edited.mlir"
        file.write_text(text)
        return file

    def refused_by_translate(self, text, says):
        done = tools.start("bowline-translate", "--mlir-to-plan", self.write(text), "-o", self.folder / "edited.plan")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(says, done.stderr.decode())

    def refused_by_certify(self, text, says):
        done = tools.start("bowline-compile", "--compile-from", "plan", self.write(text), "-o",
                           self.folder / "edited.plan")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(says, done.stderr.decode())

    def refused_by_check_and_run(self, text, says, ranks=1):
        plan = self.folder / "edited.plan"
        tools.succeed("bowline-translate", "--mlir-to-plan", self.write(text), "-o", plan)
        done = tools.start("bowline-check", plan)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(says, done.stderr.decode())
        done = self.run_plan(plan, ranks)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(says, done.stderr.decode())

    def run_plan(self, plan, ranks=1):
        return tools.start("bowline-run", plan, "--data", tools.TOKENS, "--steps", "2",
                           *(["--nproc", ranks] if ranks > 1 else []))

    def accepted(self, text, ranks=1):
        plan = self.folder / "edited.plan"
        tools.succeed("bowline-translate", "--mlir-to-plan", self.write(text), "-o", plan)
        tools.succeed("bowline-check", plan)
        done = self.run_plan(plan, ranks)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_plans_as_they_were(self):
        self.accepted(self.text(*ONE))
        self.accepted(self.text(*PIPELINE), ranks=4)

    def test_waits(self):
        """Certificates hold for the order of issue, which has not changed: the proof of races is made at load."""
        says = "the proof of no race fails"
        self.refused_by_check_and_run(self.edit(self.text(*PIPELINE), r"^ *plan\.wait.*\n", "", count=0), says, ranks=4)

    def test_initial_values(self):
        text = self.text(*ONE)
        begin = text.index("plan.program @init_program")
        edited = self.edit(text[begin:], r"^ *plan\.launch.*\n", "")
        self.refused_by_certify(text[:begin] + edited, "the proof of initial values fails: entry 'init' leaves bytes")

    def test_signatures(self):
        self.refused_by_certify(self.edit(self.text(*ONE), r'("matmul" config {[^}]*\bm = )128\b', r"\g<1>1"),
                                "leave elements of C out")

    def test_contracts(self):
        text = self.text(*ONE)
        kernel = r'(plan\.kernel @rms_norm\S* )symbol "(\S+)" extent 128'
        says = "was not made for it"
        self.refused_by_certify(self.edit(text, kernel, r'\1symbol "\2" extent 1'), says)
        self.refused_by_certify(self.edit(text, kernel, r'\1symbol "iota.0" extent 128'), says)
        self.refused_by_certify(self.edit(text, r'(symbol "rms_norm.*\]) in_place \[2, 0\]', r"\1"), says)
        bare = self.edit(text, r' contracts \[[^\]]*\] hash "[0-9a-f]*"', "")
        self.refused_by_certify(bare, "the proof of contracts fails")

    def test_communicators(self):
        one = without_certificates(self.text(*ONE))
        plan = self.folder / "edited.plan"
        edited = self.edit(one, r"^( *)(plan\.state )", r"\1plan.communicator @dp over []\n\1\2")
        tools.succeed("bowline-translate", "--mlir-to-plan", self.write(edited), "-o", plan)
        done = self.run_plan(plan)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("the plan is for one rank and has communicator 'dp'", done.stderr.decode())

    def test_groups_of_one_rank(self):
        edited = self.edit(self.text(*PIPELINE), r'@dp over \["dp"\]', "@dp over []", count=0)
        self.refused_by_certify(edited, "the proof of replicas fails: entry ")

    def test_replicas(self):
        """Gradients are summed along another axis than the one whose ranks have the same weights."""
        text = self.text(*ONE, "--mesh", "dp=2,tp=2")
        edited = self.edit(text, r'@dp over \["dp"\]', '@dp over ["tp"]')
        self.refused_by_certify(edited, "the proof of replicas fails: entry ")
        self.accepted(text, ranks=4)

    def test_target(self):
        self.refused_by_translate(self.edit(self.text(*ONE), r'cpu = "[^"]*"', 'cpu = "x86-64-v2"'),
                                  "the plan computes something else than the compiler certified")

    def test_spare_memory(self):
        """More memory than is used harms nobody."""
        text = self.text(*ONE)
        size = int(re.search(r"plan\.arena_bytes = (\d+)", text).group(1))
        self.accepted(self.edit(text, r"plan\.arena_bytes = \d+", f"plan.arena_bytes = {size + 4096}"))


if __name__ == "__main__":
    tools.main()
