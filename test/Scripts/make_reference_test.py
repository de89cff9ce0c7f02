#!/usr/bin/env python3
"""Tests of scripts/make-reference.py: what it reads out of schemas and help texts."""

import importlib.util
import pathlib
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "make-reference.py"
spec = importlib.util.spec_from_file_location("make_reference", SCRIPT)
make_reference = importlib.util.module_from_spec(spec)
spec.loader.exec_module(make_reference)


def schema_text(schema):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "test.fbs"
        path.write_text(schema)
        return make_reference.schema_page(path).text


class MakeReferenceTest(unittest.TestCase):
    def test_schema(self):
        text = schema_text("// Top.\n// More.\n\nnamespace a;\n\n// What a T is.\ntable T {\n  x:int = 3;  // an {x}\n"
                           "  // before y,\n  // two lines\n  y:[long] (required);\n}\n\n"
                           "// Not of E.\n\nenum E : ubyte { A = 0, B = 1 }\nunion U { T, S }\nroot_type T;\n")
        self.assertIn("Top.\nMore.\n", text)
        self.assertIn("## table T\n\nWhat a T is.\n", text)
        self.assertIn("| `x:int = 3` | an {x} |\n| `y:[long] (required)` | before y, two lines |\n", text)
        self.assertIn("## enum E : ubyte\n\n| value | meaning |\n|---|---|\n| `A = 0` |  |\n| `B = 1` |  |\n", text)
        self.assertIn("## union U\n\n| value | meaning |\n|---|---|\n| `T` |  |\n| `S` |  |\n", text)

    def test_every_declaration_of_the_plan_schema_has_its_section(self):
        path = SCRIPT.parents[1] / "runtime" / "plan" / "plan.fbs"
        text = make_reference.schema_page(path).text
        words = [line.split() for line in path.read_text().splitlines()]
        declared = [line[:2] for line in words if line and line[0] in ("table", "struct", "enum", "union")]
        self.assertGreater(len(declared), 10)
        for kind, name in declared:
            self.assertIn(f"## {kind} {name}", text)

    def test_schema_that_is_broken_off(self):
        with self.assertRaisesRegex(make_reference.PageError, "not closed: table T"):
            schema_text("table T {\n  x:int;\n")

    def test_subcommands(self):
        help_text = ("A tool\nUsage: x\n\nOptions:\n  -h,--help   Help\n\nSubcommands:\n  one          First\n"
                     "  two          Second, which\n               goes on\n\nFooter: text\n")
        self.assertEqual(make_reference.subcommands(help_text), ["one", "two"])
        self.assertEqual(make_reference.subcommands("Options:\n  -h\n"), [])


if __name__ == "__main__":
    unittest.main()
