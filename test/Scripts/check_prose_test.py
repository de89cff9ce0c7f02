#!/usr/bin/env python3
"""Tests of scripts/check-prose.py: which pages it reads, and which sentences it refuses."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "check-prose.py"

# 1,000 words and more, none of them refused.
LONG = "The pass replaces each use of the value.\n" * 130

GOOD = f"""\
# The page

## What is proven

{LONG}
The word `what` and the word `Who` are code here, [a link](what-it-says.md#what). <!-- What a comment says -->

```sh
echo what what what  # Who asks?
```
"""


class CheckProseTest(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.root = pathlib.Path(self.scratch.name).resolve()
        self.write("docs/page.md", GOOD)
        self.write("build/README.md", "What was built.\n")
        self.write("CHANGELOG.md", "What changed.\n")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def check(self, *flags):
        return subprocess.run([sys.executable, SCRIPT, "--root", self.root, *flags], capture_output=True, text=True,
                              check=False)

    def test_good(self):
        result = self.check()
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(result.stdout, "prose: 1 pages, 0 violations\n")

    def test_first_words(self):
        for sentence, word in (("What is left stays.", "What"), ("It ends. Who waits is named.", "Who"),
                               ("- **Whoever** calls it", "Whoever"), ("| a | What it says |", "What")):
            with self.subTest(sentence):
                self.write("docs/page.md", GOOD + sentence + "\n")
                result = self.check()
                self.assertEqual(result.returncode, 1)
                line = len(GOOD.splitlines()) + 1
                self.assertIn(f"docs/page.md:{line}: a sentence begins with '{word}'", result.stderr)

    def test_other_words_may_begin(self):
        self.write("docs/page.md", GOOD + "Whatever it is, whole words count: Whose, Whatever.\n")
        self.assertEqual(self.check().returncode, 0)

    def test_rate(self):
        self.write("docs/page.md", GOOD + "The pass says what it does.\n")
        result = self.check()
        self.assertEqual(result.returncode, 1)
        self.assertIn("'what' stands 2 times in 1", result.stderr)
        self.assertIn("more than 1.5 per 1,000", result.stderr)
        self.assertEqual(self.check("--limit", "2").returncode, 0)

    def test_pages_outside_of_docs(self):
        for name in ("README.md", "CONTRIBUTING.md", "kernels/cuda/README.md"):
            with self.subTest(name):
                self.write(name, "It says what it does.\n")
                self.assertIn(f"{name}:1:", self.check().stderr)
                (self.root / name).unlink()

    def test_no_pages(self):
        (self.root / "docs/page.md").unlink()
        self.assertEqual(self.check().returncode, 1)


if __name__ == "__main__":
    unittest.main()
