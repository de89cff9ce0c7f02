#!/usr/bin/env python3
"""Tests of `bowline completion`: shells complete what the tools say of their flags.

Usage: completion_test.py PATH_OF_BOWLINE TOOL..., the tools that are built.
"""

import functools
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

BOWLINE = None
TOOLS = set()

# Calls the function as bash would, and prints its suggestions.
BASH = """
source "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_bowline
printf '%s\\n' "${COMPREPLY[@]}"
"""

# Builtins that exist while something is completed alone.
ZSH = """
compdef() { : }
_files() { print -l -- files }
_describe() { print -rl -- "${(@P)3}" }
compset() { : }
compadd() { if [[ $1 == -a ]]; then print -rl -- "${(@P)2}"; else shift; print -rl -- "$@"; fi }
source "$1"
shift
words=("$@")
CURRENT=${#words}
_bowline
"""


class CompletionTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    @staticmethod
    @functools.cache
    def text(shell):
        return subprocess.run([BOWLINE, "completion", shell], capture_output=True, text=True, check=True).stdout

    def script(self, shell):
        script = self.folder / f"script.{shell}"
        script.write_text(self.text(shell))
        return script

    def complete(self, shell, code, *words):
        done = subprocess.run([shell, *([] if shell == "bash" else ["-f"]), "-c", code, shell, self.script(shell), *words],
                              capture_output=True, text=True, check=False, cwd=self.folder)
        self.assertEqual(done.stderr, "")
        return done.stdout.split("\n")[:-1]

    def bash(self, *words):
        return self.complete("bash", BASH, *words)

    def test_verbs(self):
        self.assertEqual(self.bash("bowline", "comp"), ["completion", *(["compile"] if "compile" in TOOLS else [])])
        self.assertLessEqual({"help", "run", "data"}, set(self.bash("bowline", "")))
        self.assertEqual(self.bash("bowline", "help", "da"), ["data"])
        self.assertEqual(self.bash("bowline", "completion", ""), ["bash", "zsh"])

    def test_flags(self):
        self.assertEqual(self.bash("bowline", "run", "--met"), ["--metrics"])
        self.assertEqual(self.bash("bowline-run", "x.plan", "--met"), ["--metrics"])
        self.assertEqual(self.bash("/usr/bin/bowline-run", "x.plan", "--met"), ["--metrics"])
        self.assertIn("--steps", self.bash("bowline", "run", "-"))
        # With a value before it that looks like nothing.
        self.assertEqual(self.bash("bowline", "run", "--steps", "3", "--met"), ["--metrics"])

    def test_commands(self):
        self.assertEqual(self.bash("bowline", "data", "to"), ["tokenize"])
        self.assertEqual(self.bash("bowline-data", "to"), ["tokenize"])
        self.assertEqual(self.bash("bowline", "data", "tokenize", "--tok"), ["--tokenizer"])
        self.assertEqual(self.bash("bowline", "data", "info", "--tok"), [""])

    def test_files(self):
        (self.folder / "a file.plan").write_text("")
        (self.folder / "b.plan").write_text("")
        self.assertEqual(self.bash("bowline", "run", "a"), ["a file.plan"])
        self.assertEqual(self.bash("bowline", "run", "x.plan", "--data", "b"), ["b.plan"])
        self.assertEqual(self.bash("bowline", "run", "x.plan", "--data", "=", "b"), ["b.plan"])
        self.assertEqual(self.bash("bowline", "data", "info", "b"), ["b.plan"])

    def test_choices(self):
        if "compile" not in TOOLS:
            self.skipTest("no compiler is built")
        self.assertEqual(self.bash("bowline", "compile", "--micro"), ["--microbatches"])
        self.assertEqual(self.bash("bowline", "compile", "--mode", ""), ["train", "generate", "serve"])
        self.assertEqual(self.bash("bowline", "compile", "--mode", "s"), ["serve"])
        # Bash makes three words of --mode=s, and two of --mode=.
        self.assertEqual(self.bash("bowline", "compile", "m", "--mode", "=", "s"), ["serve"])
        self.assertEqual(self.bash("bowline", "compile", "m", "--mode", "="), ["train", "generate", "serve"])
        self.assertEqual(self.bash("bowline", "compile", "--zero", ""), ["0", "1", "2", "3"])
        self.assertEqual(self.bash("bowline", "compile", "--compile-to", "sch"), ["schedule"])
        self.assertEqual(self.bash("bowline", "compile", "--no-cod"), ["--no-codegen"])
        # A flag without a value is followed by another word.
        self.assertEqual(self.bash("bowline", "compile", "--report", "--mod"), ["--mode"])
        # Flags that LLVM's library describes: passes, and flags of mlir-opt.
        self.assertEqual(self.bash("bowline", "opt", "--group-fus"), ["--group-fusions"])
        self.assertEqual(self.bash("bowline", "opt", "--mlir-print-ir-after-ch"), ["--mlir-print-ir-after-change"])

    @unittest.skipUnless(shutil.which("zsh"), "there is no zsh")
    def test_zsh(self):
        def zsh(*words):
            return self.complete("zsh", ZSH, *words)

        self.assertIn("run", zsh("bowline", ""))
        self.assertIn("tokenize", zsh("bowline", "data", ""))
        flags = zsh("bowline", "run", "x.plan", "--")
        self.assertTrue([flag for flag in flags if flag.startswith("--metrics:")], flags)
        self.assertEqual(zsh("bowline", "run", "x.plan", "--data", ""), ["files"])
        if "compile" in TOOLS:
            self.assertEqual(zsh("bowline", "compile", "--mode", ""), ["train", "generate", "serve"])
            self.assertEqual(zsh("bowline-compile", "--mode=s"), ["train", "generate", "serve"])

    def test_tools_of_others_are_not_started(self):
        """A file of somebody else is offered by its name, and is not asked for its flags."""
        other = self.folder / "bowline-other"
        other.write_text(f"#!/bin/sh\ntouch '{self.folder}/started'\n")
        other.chmod(0o755)
        environment = dict(os.environ, PATH=f"{self.folder}:{os.environ['PATH']}")
        done = subprocess.run([BOWLINE, "completion", "bash"], capture_output=True, text=True, check=True, env=environment)
        self.assertIn("'other'", done.stdout)
        self.assertFalse((self.folder / "started").exists())

    def test_mistakes(self):
        for arguments, says in ((["fish"], "the nearest one is 'bash', of bash and zsh"), (["zhs"], "nearest one is 'zsh'"),
                                ([], "of which shell?"), (["bash", "zsh"], "of which shell?")):
            done = subprocess.run([BOWLINE, "completion", *arguments], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn(says, done.stderr)


if __name__ == "__main__":
    BOWLINE = sys.argv[1]
    TOOLS = set(sys.argv[2:])
    unittest.main(argv=sys.argv[:1])
