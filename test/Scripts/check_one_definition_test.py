#!/usr/bin/env python3
"""Tests of scripts/check-one-definition.py: which classes it sees, and what it says about two of one name."""

import importlib.util
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "check-one-definition.py"
spec = importlib.util.spec_from_file_location("check_one_definition", SCRIPT)
check_one_definition = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check_one_definition)

# (text, the classes in it as "name line")
SOURCES = (
    ("class A {};\nstruct B final : public A<int> { int x; };\nunion C { int x; };\n", ["A 1", "B 2", "C 3"]),
    ("namespace a {\nnamespace b::c {\nstruct A {};\n}\ninline namespace d { struct B {}; }\n}\nstruct C {};\n",
     ["a::b::c::A 3", "a::d::B 5", "C 7"]),
    ("namespace a {\nnamespace {\nstruct A {};\nnamespace b { struct B {}; }\n}\nstruct C {};\n}\n", ["a::C 6"]),
    ("namespace [[deprecated]] a { struct A {}; }\nnamespace b = a;\nstruct B {};\n", ["a::A 1", "B 3"]),
    ('extern "C" {\nstruct A {};\n}\nextern "C++" int x;\nstruct B {};\n', ["A 2", "B 5"]),
    # Declarations, results and variables of a class's type, and enumerations define no class.
    ("class A;\nstruct B *f() { return nullptr; }\nstruct C g(struct D d) { return {}; }\nstruct E e = {1};\n"
     "enum class F { X };\nenum struct G : int { Y };\nenum H { Z };\ntypedef struct { int x; } I;\nstruct J {};\n", ["J 9"]),
    # Classes inside of functions and classes are members; members that are defined outside have their class's name.
    ("void f() {\n  struct A {};\n}\nclass B {\n  struct C {};\n};\nstruct B::D {\n};\nauto g = [](auto) { struct E {}; };\n",
     ["B 4", "B::D 7"]),
    ("template <class T, template <class> class U>\nclass A {};\ntemplate <> class A<int, V<bool>> {};\n"
     "template <typename T, int n = sizeof(struct X*)> struct B : A<T> {};\n", ["A 2", "A<int,V<bool>> 3", "B 4"]),
    ("class [[nodiscard]] A {};\nclass alignas(64) B {};\nclass EXPORTED C : D<decltype(f())> {};\nstruct alignas(f(1)) E final {};\n",
     ["A 1", "B 2", "C 3", "E 4"]),
    # Comments, literals and macros are no code.
    ("// struct A { \n/* struct B {\n */ struct C {};\nconst char *s = \"struct D { \\\" {\";\nchar c = '{', d = '\\'';\n"
     "auto r = R\"x(\nstruct E { )\" )x\";\nint n = 1'000'000;\n#define F \\\n  struct G {\nstruct H {};\n",
     ["C 3", "H 11"]),
    ("#include <a>\n// goes on \\\nstruct A {\nstruct B {};\n", ["B 4"]),
)


def check(root):
    return subprocess.run([sys.executable, SCRIPT, "--root", root], capture_output=True, text=True, check=False)


class CheckOneDefinitionTest(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.root = pathlib.Path(self.scratch.name)

    def write(self, file, text):
        path = self.root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def test_what_is_a_definition(self):
        for text, expected in SOURCES:
            with self.subTest(text=text):
                found = [f"{name} {line}" for name, line in check_one_definition.definitions_of(text)]
                self.assertEqual(found, expected)

    def test_names_that_are_taken_once(self):
        self.write("runtime/a.h", "namespace a { struct A {}; struct B; }\n")
        self.write("runtime/a.cc", "namespace a { namespace { struct C {}; } struct A f(); }\n")
        self.write("passes/b.cpp", "namespace a { namespace { struct C {}; struct A {}; } }\nnamespace b { struct A {}; }\n")
        self.write("passes/c.txt", "namespace a { struct A {}; }\n")
        self.write("kernels/one.h", "#if X\nstruct D {};\n#else\nstruct D { int x; };\n#endif\n")
        result = check(self.root)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(result.stdout, "one definition: 3 classes: 0 violations\n")

    def test_names_that_are_taken_twice(self):
        for first, second in (("passes/a.cpp", "runtime/b.cc"), ("passes/a.h", "runtime/b.h"), ("kernels/a.h", "test/b.cpp")):
            with self.subTest(first=first, second=second):
                self.write(first, "namespace a {\nclass A {};\n}\n")
                self.write(second, "\nnamespace a { struct A { ~A(); }; }\n")
                result = check(self.root)
                (self.root / first).unlink()
                (self.root / second).unlink()
                self.assertEqual(result.returncode, 1)
                self.assertEqual(len(result.stderr.splitlines()), 1)
                self.assertTrue(result.stderr.startswith(f"{second}:2: defines 'a::A', which {first}:2 defines too: "))
                self.assertIn("rename one, or put it into an anonymous namespace", result.stderr)


if __name__ == "__main__":
    unittest.main()
