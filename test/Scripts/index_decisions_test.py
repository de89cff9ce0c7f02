#!/usr/bin/env python3
"""Tests of scripts/index-decisions.py: the page that it writes, when --check fails, and each way to break the form."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "index-decisions.py"


def decision(number, status="accepted", area="kernels", date="2026-11-21", title="Products are our own"):
    return f"# {number}: {title}\n\n- Date: {date}\n- Area: {area}\n- Status: {status}\n\nBecause of this.\n"


GOOD = {
    "0001-products.md": decision("0001", "superseded by [0003](0003-tiles.md)"),
    "0002-threads.md": decision("0002", "accepted, amended by [0003](0003-tiles.md), [0004](0004-links.md)", title="Threads"),
    "0003-tiles.md": decision("0003", title="Tiles"),
    "0004-links.md": decision("0004", area="build", title="Links"),
    "0006-far.md": decision("0006", title="Far"),
}

# (file, its content instead of the good one, where the error is, words of the message)
BROKEN = (
    ("0003-Tiles.md", decision("0003"), ":1", ("NNNN-short-title.md",)),
    ("0003-tiles.md", "# Tiles\n\nBecause.\n", ":1", ("does not begin as a decision",)),
    ("0003-tiles.md", decision("0003").replace("Because of this.\n", ""), ":1", ("does not begin as a decision",)),
    ("0003-tiles.md", decision("0004"), ":1", ("number 0004", "number of its name")),
    ("0003-tiles.md", decision("0003", date="21.11.2026"), ":3", ("'21.11.2026'",)),
    ("0003-tiles.md", decision("0003", area="kernel"), ":4", ("no area 'kernel'", "kernels")),
    ("0003-tiles.md", decision("0003", "proposed"), ":5", ("'proposed' is not understood",)),
    ("0003-tiles.md", decision("0003", "superseded by 0004"), ":5", ("not understood",)),
    ("0003-tiles.md", decision("0003", "superseded by [0005](0005-no.md)"), ":5", ("0005-no.md", "no decision")),
    ("0003-tiles.md", decision("0003", "superseded by [0001](0004-links.md)"), ":5", ("[0001](0004-links.md)",)),
    ("0003-tiles.md", decision("0003", "superseded by [0002](0002-threads.md)"), ":5", ("not later",)),
    ("0004-other.md", decision("0004"), ":1", ("0004", "which 0004-links.md has too")),
)


class IndexDecisionsTest(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.folder = pathlib.Path(self.scratch.name)
        for file, text in GOOD.items():
            (self.folder / file).write_text(text)

    def run_script(self, *arguments):
        return subprocess.run([sys.executable, SCRIPT, "--folder", self.folder, *arguments], capture_output=True, text=True,
                              check=False)

    def test_index_by_area(self):
        result = self.run_script()
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        page = (self.folder / "README.md").read_text()
        self.assertLess(page.index("## Build"), page.index("## Kernels"))
        self.assertNotIn("## Proofs", page)
        self.assertIn("| [0001](0001-products.md) | Products are our own | 2026-11-21 | superseded by [0003](0003-tiles.md) |\n"
                      "| [0002](0002-threads.md) | Threads | 2026-11-21 | accepted, amended by", page)
        self.assertEqual(self.run_script("--check").returncode, 0)

    def test_stale_index(self):
        self.assertIn("README.md:1: is not the index", self.run_script("--check").stderr)
        self.run_script()
        (self.folder / "0004-links.md").write_text(decision("0004", area="build", title="Other links"))
        result = self.run_script("--check")
        self.assertEqual(result.returncode, 1)
        self.assertIn("README.md:1: is not the index of these decisions; run scripts/index-decisions.py", result.stderr)

    def test_broken_form(self):
        for file, text, line, words in BROKEN:
            with self.subTest(file=file, text=text):
                (self.folder / file).write_text(text)
                result = self.run_script()
                self.assertEqual(result.returncode, 1)
                self.assertFalse((self.folder / "README.md").exists())
                self.assertIn(f"{file}{line}: ", result.stderr)
                for word in words:
                    self.assertIn(word, result.stderr)
                (self.folder / file).unlink()
                if file in GOOD:
                    (self.folder / file).write_text(GOOD[file])

    def test_folder_without_decisions(self):
        for file in GOOD:
            (self.folder / file).unlink()
        self.assertIn("holds no decision", self.run_script("--check").stderr)


if __name__ == "__main__":
    unittest.main()
