#!/usr/bin/env python3
"""Tests of scripts/check-mutants.py."""

import importlib.util
import pathlib
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("check_mutants", ROOT / "scripts/check-mutants.py")
check_mutants = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check_mutants)


class Mutants(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "a.cpp").write_text("one two two\n")

    def problem(self, **change):
        mutant = {"name": "m", "file": "a.cpp", "is": "one", "becomes": "none", **change}
        return check_mutants.problem_of(mutant, self.root)

    def test_what_cannot_be_made(self):
        self.assertEqual(self.problem(), "")
        self.assertIn("there is no b.cpp", self.problem(file="b.cpp"))
        self.assertIn("is 0 times in a.cpp", self.problem(**{"is": "three"}))
        self.assertIn("is 2 times in a.cpp", self.problem(**{"is": "two"}))
        self.assertIn("changes nothing", self.problem(becomes="one"))

    def test_names_are_of_one_mistake(self):
        path = self.root / "mutants.toml"
        entry = '[[mutant]]\nname = "m"\nfile = "a.cpp"\nis = "one"\nbecomes = "none"\n'
        path.write_text(entry)
        self.assertEqual(len(check_mutants.read(path)), 1)
        path.write_text(2 * entry)
        with self.assertRaisesRegex(SystemExit, "two mistakes are named 'm'"):
            check_mutants.read(path)


if __name__ == "__main__":
    unittest.main()
