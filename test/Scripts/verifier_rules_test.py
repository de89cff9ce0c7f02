#!/usr/bin/env python3
"""Every error that the dialects report is provoked by a test: the longest text of its message is in one, word for word.

Reports are read from the sources: the literals of emitOpError, emitError and emitOptionalError, and of local lambdas
around them. Expectations are read from the tests: expected-error and its kin, lines that FileCheck reads, and
literals of C++ and Python. A text that several rules report needs as many expectations. An expectation of a longer text
does not count for a shorter text inside of it. So a new rule without a test fails here.
"""

import collections
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

EMITTER = r"emitOpError|emitError|emitOptionalError"
LAMBDA = re.compile(r"auto (\w+) = \[[^\]]*\][^;]*?\{[^{}]*?(?:" + EMITTER + r")\b")
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


def without_comments(text):
    """With lines kept, so that numbers stay."""
    return re.sub(r"//[^\n]*", "", text)


def rules_of(text):
    """(line, words) of each error in a source: words are its longest literal, after joining literals side by side."""
    text = without_comments(text)
    names = "|".join([EMITTER, *LAMBDA.findall(text)])
    for call in re.finditer(rf"\b(?:{names})\s*\(", text):
        # Up to the end of the statement; no message has a semicolon and a quote in this order.
        statement = re.sub(r'"\s*\n\s*"', "", text[call.start():])
        statement = re.match(r'(?:"(?:[^"\\\n]|\\.)*"|[^;"])*', statement).group()
        literals = [literal.encode().decode("unicode_escape") for literal in LITERAL.findall(statement)]
        words = max(literals, key=len, default="").strip()
        if words:
            yield text.count("\n", 0, call.start()) + 1, words


def expectations_of(text, suffix):
    """The texts that a test with this suffix expects, each place by itself."""
    if suffix in (".mlir", ".test"):
        diagnostics = re.findall(r"expected-(?:error|note|remark|warning)[^\n{]*\{\{(.*?)\}\}(?!\})", text)
        return diagnostics + re.findall(r"^\s*//\s*(?!RUN:)[A-Z][A-Z0-9_-]*:(.*)$", text, re.MULTILINE)
    literals = [literal.replace('\\"', '"') for literal in LITERAL.findall(
        re.sub(r'"\s*\n\s*f?"', "", without_comments(text) if suffix == ".cpp" else text))]
    return literals + re.findall(r"'((?:[^'\\\n]|\\.)*)'", text) if suffix == ".py" else literals


def expectations():
    """The texts that all tests together expect, of tests that may break a rule."""
    files = [path for folder in ("Dialects", "Passes", "Pipelines", "Unit", "Execution", "Equivalence")
             for path in sorted((ROOT / "test" / folder).rglob("*"))]
    return [expected for path in files if path.suffix in (".mlir", ".test", ".cpp", ".py")
            for expected in expectations_of(path.read_text(), path.suffix)]


def missing(rules, expected):
    """The rules, each (place, words), of texts that fewer expectations have than rules, with how many there are."""
    places = collections.defaultdict(list)
    for place, words in rules:
        places[words].append(place)
    found = collections.Counter()
    for text in expected:
        inside = [words for words in places if words in text]
        found.update(words for words in inside if not any(words != other and words in other for other in inside))
    return [f"{', '.join(map(str, places[words]))}: {words!r}, {found[words]} of {len(places[words])}"
            for words in places if found[words] < len(places[words])]


class VerifierRules(unittest.TestCase):
    def test_each_error_of_the_dialects_is_expected_somewhere(self):
        rules = [(f"{path.relative_to(ROOT)}:{line}", words) for path in sorted((ROOT / "dialects").rglob("*.cpp"))
                 for line, words in rules_of(path.read_text())]
        self.assertGreater(len(rules), 150)
        lines = missing(rules, expectations())
        self.assertEqual(lines, [], "\nnot as many tests as rules expect these; add a fragment that breaks the rule to an "
                                    "errors.mlir of test/Dialects, with these words in its expected-error\n" +
                         "\n".join(lines))

    def test_a_text_outside_of_what_is_expected_does_not_count(self):
        program = """
// This one names no axis.
// RUN: bowline-opt %s | FileCheck %s
// expected-error @+1 {{has the pattern "x"}}
graph.names_no_axis "names no axis"
// CHECK-NEXT: names no type
"""
        self.assertEqual(expectations_of(program, ".mlir"), ['has the pattern "x"', " names no type"])
        self.assertEqual(expectations_of('// "names no axis"\nf("a \\"b\\" c"\n  " d", 1);', ".cpp"), ['a "b" c d'])
        self.assertEqual(expectations_of("f('a', \"b\"\n  \"c\")", ".py"), ["bc", "a"])

    def test_rules_with_one_text_need_as_many_tests(self):
        rules = [("a:1", "names no axis"), ("b:2", "names no axis"), ("c:3", "names no axis of the mesh")]
        self.assertEqual(missing(rules, ["x names no axis", "names no axis", "names no axis of the mesh y"]), [])
        self.assertEqual(missing(rules, ["x names no axis", "names no axis of the mesh y", "names no axis of the mesh"]),
                         ["a:1, b:2: 'names no axis', 1 of 2"])

    def test_what_is_read_from_a_source(self):
        source = """
  // emitOpError("is a comment");
  auto complain = [&](const char *problem) {
    return op->emitOpError("factor ") << number << " " << problem;
  };
  if (a)
    return emitOpError("has ") << a << " elements; it needs "
                                       "more";
  return emitOptionalError(loc, what, " is short");
  return complain("is wrong") << name("with a \\"quote\\"");
"""
        self.assertEqual(list(rules_of(source)),
                         [(4, "factor"), (7, "elements; it needs more"), (9, "is short"), (10, 'with a "quote"')])


if __name__ == "__main__":
    unittest.main()
