#!/usr/bin/env python3
"""Tests of scripts/check-prose.py: which pages and sources it reads, and which sentences it refuses."""

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

HEADER = f"""\
// {LONG.replace(chr(10), " ")}
const char* what = "What is wrong with what? // What?";  // none of `what`
"""

TABLEGEN = f"""\
def What : Op<"what", "what it"> {{
  // {LONG.replace(chr(10), " ")}
  let summary = "The name of a thing";
  let description = [{{
    A text.
    ```mlir
    what
    ```
  }}];
  let extraClassDeclaration = [{{
    int what();
  }}];
}}
"""


class CheckProseTest(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.root = pathlib.Path(self.scratch.name).resolve()
        self.write("docs/page.md", GOOD)
        self.write("passes/Passes.td", TABLEGEN)
        self.write("checker/Check.h", HEADER)
        self.write("runtime/hal/device.h", HEADER)
        self.write("runtime/drivers/driver.h", "// What no rule reads.\n")
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
        self.assertEqual(result.stdout, "prose: 1 pages, 3 sources, 0 violations\n")

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

    def test_sources(self):
        what = "The pass says what it does."
        for name, good, bad, line in (
                ("checker/Check.h", HEADER, HEADER + f"int x;  ///< {what}\n", 3),
                ("dialects/Graph/Graph.h", "", f"// {what}\n", 1),
                ("runtime/hal/device.h", HEADER, HEADER + f'char c = \'"\';  // "c": {what}\n', 3),
                ("passes/Passes.td", TABLEGEN, TABLEGEN.replace("The name of a thing", what), 3),
                ("passes/Passes.td", TABLEGEN, TABLEGEN.replace("A text.", what), 5),
                ("dialects/Graph/Graph.td", "", f"let methods = [InterfaceMethod<[{{\n{what}\n}}]>];\n", 2)):
            with self.subTest(name, line=line):
                self.write(name, bad)
                # Once in the 1,000 words of the group, however few the file has.
                self.assertEqual(self.check().returncode, 0)
                result = self.check("--limit", "0.9")
                self.assertEqual(result.returncode, 1)
                self.assertIn(f"{name}:{line}: 'what' stands 1 times in 1", result.stderr)
                self.write(name, bad.replace(what, "It ends. What is left stays."))
                result = self.check()
                self.assertEqual(result.returncode, 1)
                self.assertIn(f"{name}:{line}: a sentence begins with 'What'", result.stderr)
                self.write(name, good)

    def test_no_sources(self):
        (self.root / "checker/Check.h").unlink()
        self.assertEqual(self.check().returncode, 1)

    def test_no_pages(self):
        (self.root / "docs/page.md").unlink()
        self.assertEqual(self.check().returncode, 1)


if __name__ == "__main__":
    unittest.main()
