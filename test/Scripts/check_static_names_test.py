#!/usr/bin/env python3
"""Tests of scripts/check-static-names.py: which names it sees, and what it says about two of one library."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "check-static-names.py"

LIBRARY = "bowline_add_compiler_library(Library\n  SOURCES\n    A.cpp\n    inner/B.cpp\n  LINKS Other)\n"


class CheckStaticNamesTest(unittest.TestCase):
    def check(self, a, b, page=LIBRARY):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "passes/inner").mkdir(parents=True)
            (root / "passes/CMakeLists.txt").write_text(page)
            (root / "passes/A.cpp").write_text(a)
            (root / "passes/inner/B.cpp").write_text(b)
            return subprocess.run([sys.executable, SCRIPT, "--root", root], capture_output=True, text=True, check=False)

    def test_names_of_all_kinds(self):
        own = (
            ("static int f(int a) {\n  return a;\n}\n", "f"),
            ("static llvm::StringRef f(mlir::Value v) { return g(v); }\n", "f"),
            ("static constexpr int kA = 1;\n", "kA"),
            ("static const char *const kA[] = {nullptr};\n", "kA"),
            ("namespace {\nint f() { return 1; }\n}  // namespace\n", "f"),
            ("namespace {\nclass A final {\n  int b;\n};\n} // namespace\n", "A"),
            ("namespace {\nconstexpr int64_t kA = -1;\n}  // namespace\n", "kA"),
            ("namespace {\nusing A = int;\n}  // namespace\n", "A"),
        )
        for text, name in own:
            # Other parameters, for then no compiler refuses both.
            result = self.check(text, text.replace("int a", "long a"))
            self.assertEqual(result.returncode, 1, text)
            self.assertIn(f"passes/inner/B.cpp: has a '{name}' of its own, and so has passes/A.cpp of the same library, Library",
                          result.stderr)
            self.assertIn("static names: 1 libraries: 1 violations", result.stdout)

    def test_what_is_no_name_of_its_own(self):
        for text in ("int f() { return 1; }\n", "// static int f() {}\n", "void A::f() {\n  static int g = h();\n}\n",
                     "namespace {\nusing nlohmann::json;\n}  // namespace\n"):
            result = self.check(text, text)
            self.assertEqual(result.returncode, 0, text + result.stderr)

    def test_two_libraries(self):
        text = "static int f() { return 1; }\n"
        page = LIBRARY.replace("    inner/B.cpp\n", "") + LIBRARY.replace("    A.cpp\n", "").replace("Library", "Second")
        self.assertEqual(self.check(text, text, page).returncode, 0)

    def test_no_library(self):
        self.assertEqual(self.check("", "", "").returncode, 1)


if __name__ == "__main__":
    unittest.main()
