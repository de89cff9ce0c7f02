#!/usr/bin/env python3
"""Tests of scripts/format.sh and .githooks/pre-commit in a repository of their own."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
UGLY, NEAT = "int  f( ) {return 1;}\n", "int f() { return 1; }\n"


class FormatTest(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.root = pathlib.Path(self.scratch.name)
        # Without the user's configuration and without the variables that git sets for hooks.
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        self.environment.update(GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_SYSTEM="/dev/null")
        for file in (".clang-format", ".githooks/pre-commit", "scripts/format.sh"):
            (self.root / file).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / file, self.root / file)
        self.git("init", "-q")
        for name, value in (("user.name", "a"), ("user.email", "a@b"), ("core.hooksPath", ".githooks")):
            self.git("config", name, value)
        self.write("a.cc", NEAT)
        self.commit("first", check=True)

    def write(self, file, text):
        (self.root / file).write_text(text)

    def run_in_root(self, *command, check=False):
        return subprocess.run(command, cwd=self.root, env=self.environment, capture_output=True, text=True, check=check)

    def git(self, *arguments):
        return self.run_in_root("git", *arguments, check=True).stdout

    def commit(self, message, check=False):
        self.git("add", "-A")
        return self.run_in_root("git", "commit", "-q", "-m", message, check=check)

    def test_check_names_what_is_not_formatted_and_changes_nothing(self):
        self.assertEqual(self.run_in_root("scripts/format.sh", "--check").returncode, 0)
        self.write("a.cc", UGLY)
        result = self.run_in_root("scripts/format.sh", "--check")
        self.assertEqual(result.returncode, 1)
        self.assertIn("a.cc:1:", result.stderr)
        self.assertIn("run 'make format'", result.stderr)
        self.assertEqual((self.root / "a.cc").read_text(), UGLY)

    def test_format_changes_sources_that_git_knows(self):
        self.write("a.cc", UGLY)
        self.write("unknown.cc", UGLY)
        self.run_in_root("scripts/format.sh", check=True)
        self.assertEqual((self.root / "a.cc").read_text(), NEAT)
        self.assertEqual((self.root / "unknown.cc").read_text(), UGLY)

    def test_commit_is_formatted(self):
        self.write("a.cc", UGLY)
        self.write("b b.h", UGLY)
        self.write("page.md", "int  x\n")
        self.assertEqual(self.commit("second").returncode, 0)
        self.assertEqual(self.git("show", "HEAD:a.cc"), NEAT)
        self.assertEqual(self.git("show", "HEAD:b b.h"), NEAT)
        self.assertEqual(self.git("status", "--porcelain"), "")

    def test_part_of_a_file_is_not_changed(self):
        self.write("a.cc", UGLY)
        self.git("add", "a.cc")
        self.write("a.cc", UGLY + "int later;\n")
        result = self.run_in_root("git", "commit", "-q", "-m", "second")
        self.assertEqual(result.returncode, 1)
        self.assertIn("a.cc: the committed part is not formatted", result.stderr)
        self.write("a.cc", NEAT + "int g();\n")
        self.git("add", "a.cc")
        self.write("a.cc", NEAT + "int g();\nint  later;\n")
        self.run_in_root("git", "commit", "-q", "-m", "second", check=True)
        self.assertEqual(self.git("show", "HEAD:a.cc"), NEAT + "int g();\n")
        self.assertIn("int  later;", (self.root / "a.cc").read_text())

    def test_commit_without_sources(self):
        self.write("page.md", "text\n")
        self.assertEqual(self.commit("second").returncode, 0)


if __name__ == "__main__":
    unittest.main()
