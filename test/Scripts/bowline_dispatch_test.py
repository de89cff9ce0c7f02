#!/usr/bin/env python3
"""Tests of the command `bowline`, which becomes bowline-VERB.

Usage: bowline_dispatch_test.py PATH_OF_BOWLINE [PATH_OF_BOWLINE_COMPILE], the second where the compiler is built.
"""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

BOWLINE = COMPILE = None


class BowlineDispatchTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.home = pathlib.Path(scratch.name) / "home"
        self.path = pathlib.Path(scratch.name) / "on path"
        self.home.mkdir()
        self.path.mkdir()
        self.bowline = self.home / "bowline"
        shutil.copy(BOWLINE, self.bowline)

    def tool(self, folder, verb, script, mode=0o755):
        path = folder / f"bowline-{verb}"
        path.write_text("#!/bin/sh\n" + script)
        path.chmod(mode)
        return path

    def run_bowline(self, *arguments):
        environment = dict(os.environ, PATH=f"/nonexistent:{self.path}:/usr/bin:/bin")
        return subprocess.run([self.bowline, *arguments], capture_output=True, text=True, env=environment, check=False)

    def test_becomes_the_tool_with_its_arguments_and_exit_code(self):
        self.tool(self.home, "compile", 'for a in "$@"; do echo "[$a]"; done; cat; exit 42')
        environment = dict(os.environ, PATH="/usr/bin:/bin")
        result = subprocess.run([self.bowline, "compile", "a b", "", "--flag=*", "help"], input="stdin\n",
                                capture_output=True, text=True, env=environment, check=False)
        self.assertEqual(result.returncode, 42)
        self.assertEqual(result.stdout, "[a b]\n[]\n[--flag=*]\n[help]\nstdin\n")

    def test_death_by_signal_is_passed_on(self):
        self.tool(self.home, "run", "kill -9 $$")
        self.assertEqual(self.run_bowline("run").returncode, -signal.SIGKILL)

    def test_tool_beside_it_wins_over_path(self):
        self.tool(self.path, "run", "echo path")
        self.assertEqual(self.run_bowline("run").stdout, "path\n")
        self.tool(self.home, "run", "echo home")
        self.assertEqual(self.run_bowline("run").stdout, "home\n")

    def test_is_found_through_a_link(self):
        self.tool(self.home, "run", "echo home")
        (self.path / "bowline").symlink_to(self.bowline)
        self.bowline = self.path / "bowline"
        self.assertEqual(self.run_bowline("run").stdout, "home\n")

    def test_help_lists_the_verbs(self):
        here = self.tool(self.home, "compile", "")
        there = self.tool(self.path, "data", "")
        self.tool(self.home, "readme", "", mode=0o644)
        (self.home / "bowline-folder").mkdir()
        (self.home / "bowline-").write_text("")
        for flag in ("help", "--help", "-h"):
            result = self.run_bowline(flag)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertIn(f"  compile  {here}\n", result.stdout)
            self.assertIn(f"  data     {there}\n", result.stdout)
            self.assertNotIn("readme", result.stdout)
            self.assertNotIn("folder", result.stdout)

    def test_help_of_a_verb(self):
        self.tool(self.home, "data", 'echo "$@"')
        self.assertEqual(self.run_bowline("help", "data").stdout, "--help\n")

    def test_unknown_verb_names_the_nearest(self):
        for verb in ("compile", "check", "run", "data"):
            self.tool(self.home, verb, "")
        for wrong, nearest in (("compil", "compile"), ("chekc", "check"), ("rum", "run"), ("dta", "data"), ("", "run")):
            result = self.run_bowline(wrong)
            self.assertEqual(result.returncode, 1)
            self.assertEqual(result.stdout, "")
            self.assertEqual(result.stderr, f"bowline: error: unknown verb '{wrong}'; the nearest one is '{nearest}', "
                             "and 'bowline help' lists all\n")

    def test_a_command_of_a_tool_is_no_verb(self):
        self.tool(self.home, "data", "printf '%s\\ncommand\\t\\t\\t\\ncommand\\ttokenize\\t\\tText to tokens\\n' 'bowline flags 1'")
        result = self.run_bowline("tokenize")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr,
                         "bowline: error: unknown verb 'tokenize'; it is a command: 'bowline data tokenize'\n")

    def test_unknown_flag_names_the_nearest(self):
        self.tool(self.home, "run", "")
        for wrong, nearest in (("--versoin", "--version"), ("--hlep", "--help")):
            result = self.run_bowline(wrong)
            self.assertEqual(result.returncode, 1)
            self.assertIn(f"unknown flag '{wrong}'; the nearest one is '{nearest}'", result.stderr)

    def test_verb_is_no_path(self):
        self.tool(self.home, "run", "")
        (self.home / "bowline-x").mkdir()
        self.tool(self.home, "x/run", "echo wrong")
        self.assertEqual(self.run_bowline("x/run").returncode, 1)

    def test_no_verb_and_no_tools(self):
        self.assertEqual(self.run_bowline().returncode, 1)
        result = self.run_bowline("run")
        self.assertEqual(result.returncode, 1)
        self.assertIn("make build", result.stderr)

    def test_tool_that_cannot_start(self):
        self.tool(self.home, "run", "").write_text("#!/nonexistent/interpreter\n")
        result = self.run_bowline("run")
        self.assertIn("cannot start", result.stderr)
        self.assertNotEqual(result.returncode, 0)

    def test_version(self):
        self.assertRegex(self.run_bowline("--version").stdout,
                         r"\Abowline +\d+\.\d+\.\d+\ncommit +\S.*\nLLVM +\S.*\ntargets +\w+(, \w+)*\n\Z")

    def test_version_names_the_targets_that_plans_are_compiled_for(self):
        if COMPILE is None:
            self.skipTest("this build has no compiler to compare with")
        described = subprocess.run([COMPILE, "--help"], capture_output=True, text=True, check=True).stdout
        targets = re.search(r"^ *--target TEXT:\{([^}]*)\}", described, re.MULTILINE).group(1).split(",")
        self.assertGreater(len(targets), 1)
        version = self.run_bowline("--version").stdout
        self.assertEqual(re.search(r"^targets +(.*)$", version, re.MULTILINE).group(1).split(", "), targets)


if __name__ == "__main__":
    BOWLINE = sys.argv.pop(1)
    COMPILE = sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else None
    unittest.main()
