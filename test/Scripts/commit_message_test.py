#!/usr/bin/env python3
"""Tests of .githooks/commit-msg in a repository of their own."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class CommitMessageTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name)
        # Without the user's configuration and without the variables that git sets for hooks.
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        self.environment.update(GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_SYSTEM="/dev/null", GIT_EDITOR="true")
        (self.root / ".githooks").mkdir()
        shutil.copy(ROOT / ".githooks/commit-msg", self.root / ".githooks/commit-msg")
        self.git("init", "-q", "-b", "main")
        for name, value in (("user.name", "a"), ("user.email", "a@b"), ("core.hooksPath", ".githooks")):
            self.git("config", name, value)
        self.assertEqual(self.commit("[build] Begin the repository").returncode, 0)

    def git(self, *arguments, check=True):
        return subprocess.run(["git", *arguments], cwd=self.root, env=self.environment, capture_output=True, text=True,
                              check=check)

    def commit(self, message):
        return self.git("commit", "-q", "--allow-empty", "-m", message, check=False)

    def test_subjects_of_the_form_pass(self):
        longest = "[plan] " + "Verify ".ljust(72 - len("[plan] "), "x")
        for message in ("[kernels] Pack weights of f16", "[kernels/cuda] Ask cuDNN\n\n" + "A long line of the body. " * 9,
                        "[x86-64] Name levels", longest, longest[:-1] + "ü"):
            done = self.commit(message)
            self.assertEqual(done.returncode, 0, f"{message}: {done.stderr}")
            self.assertEqual(self.git("log", "-1", "--format=%s").stdout.strip(), message.splitlines()[0])

    def test_other_subjects_are_refused(self):
        before = self.git("rev-parse", "HEAD").stdout
        for message, why in (("Pack weights of f16", "another form"), ("[kernels]Pack weights", "another form"),
                             ("[kernels] pack weights", "another form"), ("[Kernels] Pack weights", "another form"),
                             ("[] Pack weights", "another form"), ("[kernels] Pack", "another form"),
                             ("kernels: Pack weights", "another form"), ("# Pack weights", "another form"),
                             ("[kernels] Pack weights.", "full stop"), ("[plan] Verify ".ljust(73, "x"), "73 characters"),
                             ("Merged the branch", "another form")):
            done = self.commit(message)
            self.assertEqual(done.returncode, 1, message)
            self.assertIn(f"commit-msg: error: '{'' if message[0] == '#' else message}': the subject", done.stderr)
            self.assertIn(why, done.stderr)
        self.assertEqual(self.git("rev-parse", "HEAD").stdout, before)

    def test_what_git_words_passes(self):
        self.git("checkout", "-q", "-b", "side")
        (self.root / "file").write_text("1\n")
        self.git("add", "file")
        self.assertEqual(self.commit("[build] Add a file " + "x" * 50).returncode, 0)
        self.git("checkout", "-q", "main")
        self.assertEqual(self.commit("[build] Go on beside it").returncode, 0)
        self.git("merge", "-q", "--no-ff", "--no-edit", "side")
        self.assertEqual(self.git("log", "-1", "--format=%s").stdout, "Merge branch 'side'\n")
        self.git("revert", "--no-edit", "side")
        self.git("revert", "--no-edit", "HEAD")
        self.assertGreater(len(self.git("log", "-1", "--format=%s").stdout), 73)
        for flag in ("--fixup=side", "--squash=side", "--fixup=amend:side"):
            self.git("commit", "-q", "--allow-empty", "--no-edit", flag)


if __name__ == "__main__":
    unittest.main()
