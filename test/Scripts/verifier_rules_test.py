#!/usr/bin/env python3
"""Every error that the dialects report is provoked by a test: the longest text of its message is in one, word for word.

What is reported is read from the sources: the literals of emitOpError, emitError and emitOptionalError, and of local
lambdas around them. So a new rule without a test fails here.
"""

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
    """(line, words) of each error in a source: words are its longest literal, with what stands side by side joined."""
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


def tests():
    """All texts that expect errors."""
    files = [path for folder in ("Dialects", "Passes", "Pipelines", "Unit", "Execution", "Equivalence")
             for path in sorted((ROOT / "test" / folder).rglob("*"))]
    text = "\n".join(path.read_text() for path in files if path.suffix in (".mlir", ".test", ".cpp", ".py"))
    # As C++ joins literals, and writes quotes in them.
    return re.sub(r'"\s*\n\s*"', "", text).replace('\\"', '"')


class VerifierRules(unittest.TestCase):
    def test_each_error_of_the_dialects_is_expected_somewhere(self):
        expected = tests()
        rules = [(path.relative_to(ROOT), line, words) for path in sorted((ROOT / "dialects").rglob("*.cpp"))
                 for line, words in rules_of(path.read_text())]
        self.assertGreater(len(rules), 150)
        missing = [f"{path}:{line}: {words!r}" for path, line, words in rules if words not in expected]
        self.assertEqual(missing, [], "\nno test expects these; add a fragment that breaks the rule to an errors.mlir of "
                                      "test/Dialects, with these words in its expected-error\n" + "\n".join(missing))

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
