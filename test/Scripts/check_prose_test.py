#!/usr/bin/env python3
"""Tests of scripts/check-prose.py: which pages, sources and messages it reads, and which sentences it refuses."""

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
const char* what = "What now";  /* none of `what` */ int what;
"""

MESSAGES = f"""\
#include "what/what.h"  // What is only said here.
/* "What is only said here?" */
auto what = Error("what", 'w', '"', "what now", R"(\\w+ what what what)",
                  R"(what what what)" /* what what what */ "{LONG.replace(chr(10), '"' + chr(10) + '"')}");
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


# A header of each group.
HEADERS = ("checker/Check.h", "compiler/Emit/Emit.h", "passes/Pass.h", "kernels/cuda/kernel.h", "runtime/hal/device.h")
# Folders with messages, one of each group.
FOLDERS = ("runtime/comm", "compiler", "passes", "dialects/Graph", "checker", "kernels/cpu")


class CheckProseTest(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.root = pathlib.Path(self.scratch.name).resolve()
        self.write("docs/page.md", GOOD)
        self.write("passes/Passes.td", TABLEGEN)
        for header in HEADERS:
            self.write(header, HEADER)
        self.write("test/Unit/fixture.h", "// What no rule reads.\n")
        for folder in FOLDERS:
            self.write(f"{folder}/messages.cc", MESSAGES)
        self.write("types/types.cc", 'Error("What no rule reads.");\n')
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
        lines = result.stdout.splitlines()
        self.assertEqual(lines[-1], "prose: 1 pages, 12 sources, 0 violations")
        self.assertEqual(len(lines), 14)
        self.assertRegex(lines[0], r"^prose: pages: 'what' stands 1 times in 10\d\d words, 0\.9\d per 1,000$")
        self.assertRegex(lines[7], r"^prose: messages of the runtime: 'what' stands 0 times in 10\d\d words, 0\.00 per 1,000$")

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
                ("runtime/drivers/driver.h", "", f"// {what}\n", 1),
                ("targets/target.h", "", f"// {what}\n", 1),
                ("runtime/hal/device.h", HEADER, HEADER + f'char c = \'"\';  // "c": {what}\n', 3),
                ("passes/Passes.td", TABLEGEN, TABLEGEN.replace("The name of a thing", what), 3),
                ("checker/Check.h", HEADER, HEADER + f"/* A block\n * and {what}\n */\n", 4),
                ("passes/Passes.td", TABLEGEN, TABLEGEN.replace("A text.", what), 5),
                ("passes/One.td", "", f"let description = [{{ {what} }}];\n", 1),
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

    def test_messages(self):
        what = "The pass says what it does."
        one_line = f'Error("{what}");'
        for folder, code, line in (
                *((folder, one_line, 1) for folder in FOLDERS),
                ("passes", 'Error("It", "\\"says\\" "\n  "what it does. It ends.\\nWhat is left stays.");', 2),
                ("compiler", f'constexpr char kHelp[] = R"x(Usage: "a)"\n{what})x";', 2)):
            with self.subTest(code, folder=folder):
                name = f"{folder}/more.cpp"
                self.write(name, code.replace("\\nWhat is left stays.", ""))
                # Once in the 1,000 words of the group, however few the file has.
                self.assertIn(f"{name}:{line}: 'what' stands 1 times in 1", self.check("--limit", "0.9").stderr)
                self.write(name, code.replace(what, "It ends. What is left stays."))
                self.assertIn(f"{name}:{line}: a sentence begins with 'What'", self.check().stderr)
                (self.root / name).unlink()

    def test_first_word_of_a_message(self):
        for code, word in (('Error("what is left stays");', "what"), ('Error(f, "who waits is named");', "who"),
                           ('return bad ? "it ends there"\n : "what is left stays";', "what")):
            with self.subTest(code):
                self.write("passes/more.cpp", code)
                self.assertIn(f": a sentence begins with '{word}'", self.check().stderr)
        for code in ('StrCat(name, ": it ends: what is left stays");', 'Error("it ends there "\n"who knows where");',
                     'StrCat(name, " who waits there");'):
            with self.subTest(code):
                self.write("passes/more.cpp", code)
                self.assertEqual(self.check().stderr, "")

    def test_no_sources(self):
        for name in ("checker/Check.h", "dialects/Graph/messages.cc"):
            with self.subTest(name):
                text = (self.root / name).read_text()
                (self.root / name).unlink()
                self.assertEqual(self.check().returncode, 1)
                self.write(name, text)

    def test_no_pages(self):
        (self.root / "docs/page.md").unlink()
        self.assertEqual(self.check().returncode, 1)


if __name__ == "__main__":
    unittest.main()
