#!/usr/bin/env python3
"""Tests of scripts/tidy.py in a repository of their own: what it looks at, what it leaves out, and what it says."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "tidy.py"

# bugprone-integer-division, once a line.
OLD = "double Old(int a) { return a / 2; }\n"
NEW = "double New(int a) { return a / 3; }\n"
# The same in a header.
HEADER = "inline double In(int a) { return a / 5; }\n"


class TidyTest(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.root = pathlib.Path(self.scratch.name).resolve()
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        self.environment.update(GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_SYSTEM="/dev/null")
        self.write(".clang-tidy", "Checks: '-*,bugprone-integer-division'\nHeaderFilterRegex: '.*'\n")
        self.write("a.cc", OLD)
        self.write("lib/b.cc", '#include "lib/inner.h"\n' + OLD)
        self.write("lib/inner.h", '#include "lib/outer.h"\n')
        self.write("lib/outer.h", "int f();\n")
        self.write("lonely.h", "int g();\n")
        self.write_build()
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "a")
        self.git("config", "user.email", "a@b")
        self.git("add", "a.cc", "lib", "lonely.h", ".clang-tidy")
        self.git("commit", "-q", "-m", "first")

    def write(self, file, text):
        (self.root / file).parent.mkdir(parents=True, exist_ok=True)
        (self.root / file).write_text(text)

    def write_build(self):
        self.write("build/compile_commands.json", json.dumps(
            [{"directory": str(self.root / "build"), "file": file, "command": f"clang++-22 -I{self.root} -c {file}"}
             for file in (f"{self.root}/a.cc", f"{self.root}/lib/b.cc")]))

    def git(self, *arguments):
        subprocess.run(["git", "-C", self.root, *arguments], check=True, env=self.environment)

    def tidy(self, *arguments):
        return subprocess.run([sys.executable, SCRIPT, "--root", self.root, "--build-dir", self.root / "build", *arguments],
                              capture_output=True, text=True, check=False, env=self.environment)

    def test_nothing_changed(self):
        result = self.tidy()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("tidy: 0 files changed since main", result.stdout)

    def test_changed_lines_alone(self):
        self.write("a.cc", OLD + NEW)
        result = self.tidy()
        self.assertEqual(result.returncode, 1)
        self.assertIn("a.cc:2:", result.stdout)
        self.assertNotIn("a.cc:1:", result.stdout)
        self.assertIn("1 files changed since main, 1 looked at, 0 left out; 1 sources with findings", result.stdout)
        self.write("a.cc", OLD + "int fine();\n")
        self.assertEqual(self.tidy().returncode, 0)

    def test_sources_that_are_compiled_as_one(self):
        self.write("build/Unity/unity_0_cxx.cxx", f'#include "{self.root}/a.cc"\n\n#include "{self.root}/lib/b.cc"\n')
        unit = f"{self.root}/build/Unity/unity_0_cxx.cxx"
        self.write("build/compile_commands.json", json.dumps(
            [{"directory": str(self.root / "build"), "file": unit, "command": f"clang++-22 -I{self.root} -c {unit}"}]))
        self.write("lib/b.cc", '#include "lib/inner.h"\n' + OLD + NEW)
        result = self.tidy()
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("lib/b.cc:3:", result.stdout)
        self.assertNotIn("a.cc:", result.stdout)
        self.assertIn("1 looked at, 0 left out; 1 sources with findings", result.stdout)

    def test_committed_changes(self):
        self.git("checkout", "-q", "-b", "branch")
        self.write("a.cc", NEW + OLD)
        self.git("commit", "-q", "-a", "-m", "second")
        self.assertIn("a.cc:1:", self.tidy().stdout)
        self.assertEqual(self.tidy("--base", "branch").returncode, 0)

    def test_header_through_a_source(self):
        self.write("lib/outer.h", HEADER)
        result = self.tidy()
        self.assertEqual(result.returncode, 1)
        self.assertIn("lib/outer.h:1:", result.stdout)
        self.assertNotIn("b.cc:2:", result.stdout)

    def test_header_that_nobody_includes_is_named(self):
        self.write("lonely.h", HEADER)
        result = self.tidy()
        self.assertEqual(result.returncode, 0)
        self.assertIn("tidy: left out: lonely.h: build compiles no source that includes it", result.stdout)
        self.assertIn("1 files changed since main, 0 looked at, 1 left out", result.stdout)

    def test_time_that_is_over_is_named(self):
        self.write("a.cc", NEW)
        result = self.tidy("--minutes", "0")
        self.assertEqual(result.returncode, 0)
        self.assertIn("tidy: left out: a.cc: the time was over", result.stdout)

    def test_source_that_does_not_compile(self):
        self.write("a.cc", "int f() { return missing; }\n")
        result = self.tidy()
        self.assertEqual(result.returncode, 1)
        self.assertIn("missing", result.stdout)

    def test_first_commit_is_all_new(self):
        result = self.tidy("--last-commit")
        self.assertEqual(result.returncode, 1)
        self.assertIn("a.cc:1:", result.stdout)
        self.assertIn("b.cc:2:", result.stdout)
        self.assertIn("5 files changed since ", result.stdout)

    def test_last_commit(self):
        self.write("a.cc", OLD + NEW)
        self.git("commit", "-q", "-a", "-m", "second")
        result = self.tidy("--last-commit")
        self.assertEqual(result.returncode, 1)
        self.assertIn("a.cc:2:", result.stdout)
        self.assertNotIn("a.cc:1:", result.stdout)
        self.write("lib/outer.h", "int g();\n")
        self.git("commit", "-q", "-a", "-m", "third")
        self.assertEqual(self.tidy("--last-commit").returncode, 0)

    def test_merge_is_all_that_it_brings(self):
        self.git("checkout", "-q", "-b", "branch")
        self.write("a.cc", OLD + NEW)
        self.git("commit", "-q", "-a", "-m", "second")
        self.write("lib/outer.h", "int g();\n")
        self.git("commit", "-q", "-a", "-m", "third")
        self.git("checkout", "-q", "main")
        self.write("lonely.h", "int h();\n")
        self.git("commit", "-q", "-a", "-m", "fourth")
        self.git("merge", "-q", "--no-edit", "branch")
        result = self.tidy("--last-commit")
        self.assertIn("a.cc:2:", result.stdout)
        self.assertIn("2 files changed since ", result.stdout)

    def make_shallow_clone(self):
        """Lets the tests' repository be a clone of its last commit alone, which is a new one."""
        self.write("a.cc", OLD + NEW)
        self.git("commit", "-q", "-a", "-m", "second")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        source, self.root = self.root, pathlib.Path(folder.name).resolve() / "clone"
        subprocess.run(["git", "clone", "-q", "--depth", "1", f"file://{source}", self.root], check=True,
                       env=self.environment)
        self.write_build()

    def test_shallow_clone_fetches_what_is_before(self):
        self.make_shallow_clone()
        result = self.tidy("--last-commit")
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertIn("a.cc:2:", result.stdout)
        self.assertIn("1 files changed since ", result.stdout)

    def test_shallow_clone_that_cannot_fetch(self):
        self.make_shallow_clone()
        self.git("remote", "set-url", "origin", f"file://{self.root}/nowhere")
        result = self.tidy("--last-commit")
        self.assertEqual(result.returncode, 77, result.stdout + result.stderr)
        self.assertIn("tidy: left out: all that changed: this clone has not commit ", result.stdout)

    def test_what_cannot_run(self):
        self.assertIn("git merge-base nowhere HEAD", self.tidy("--base", "nowhere").stderr)
        (self.root / "build/compile_commands.json").unlink()
        result = self.tidy()
        self.assertEqual(result.returncode, 1)
        self.assertIn("compile_commands.json is missing", result.stderr)


if __name__ == "__main__":
    unittest.main()
