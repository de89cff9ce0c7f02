#!/usr/bin/env python3
"""Tests of scripts/run-doc-examples.py."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "run-doc-examples.py"


def block(commands, marker="<!-- run -->"):
    return f"{marker}\n```sh\n{commands}\n```\n"


def output(text):
    return f"<!-- output -->\n```text\n{text}\n```\n"


class RunDocExamplesTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name)
        (self.root / "docs").mkdir()
        (self.root / "bin").mkdir()
        tool = self.root / "bin" / "bowline-test-tool"
        tool.write_text("#!/bin/sh\necho tool \"$@\"\n")
        tool.chmod(0o755)

    def run_page(self, page, *arguments):
        (self.root / "README.md").write_text(page)
        return subprocess.run([sys.executable, SCRIPT, "--root", self.root, "--tools", self.root / "bin", *arguments],
                              capture_output=True, text=True, check=False)

    def expect_pass(self, page, count=1):
        result = self.run_page(page)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(result.stdout, f"doc examples: {count} as documented, 0 not\n")

    def expect_failure(self, page, *words):
        result = self.run_page(page)
        self.assertEqual(result.returncode, 1)
        for word in words:
            self.assertIn(word, result.stderr)

    def test_commands_run_with_the_tools_in_a_copy_that_blocks_share(self):
        self.expect_pass("# Title\n" + block("bowline-test-tool a > made; test -f README.md") + "text\n" +
                         block("cat made") + "\n" + output("tool a"), count=2)
        self.assertFalse((self.root / "made").exists())

    def test_pages_of_examples_are_run_as_well(self):
        (self.root / "examples" / "one").mkdir(parents=True)
        (self.root / "examples" / "one" / "README.md").write_text(block("false"))
        self.expect_failure(block("true"), "examples/one/README.md:2: exit code 1")

    def test_unmarked_blocks_do_not_run(self):
        self.expect_pass("```sh\nexit 1\n```\n" + block("true") + "```text\nnot checked\n```\n")

    def test_markers_inside_other_blocks_are_text(self):
        self.expect_pass("````markdown\n" + block("exit 1") + "````\n" + block("true"))

    def test_failing_command(self):
        self.expect_failure("one\n" + block("echo before\nfalse\necho after"), "README.md:3: exit code 1", "    before\n")

    def test_failure_in_a_pipe_and_unset_variable(self):
        self.expect_failure(block("false | true"), "exit code 1")
        self.expect_failure(block("echo $not_set_anywhere"), "exit code 1")

    def test_stated_exit_code(self):
        self.expect_pass(block("exit 2", "<!-- run exit=2 -->"))
        self.expect_failure(block("exit 1", "<!-- run exit=2 -->"), "exit code 1, the page says 2")
        self.expect_failure(block("true", "<!-- run exit=2 -->"), "exit code 0, the page says 2")

    def test_output_must_match(self):
        self.expect_pass(block("echo a; echo b >&2") + output("a\nb"))
        self.expect_failure(block("echo a") + output("b"), "README.md:6: the output differs", "    a\n", "    b\n")
        self.expect_failure(block("echo a; echo b") + output("a"), "the output differs")
        self.expect_failure(block("echo a") + output("a\nb"), "the output differs")

    def test_wildcards(self):
        self.expect_pass(block("echo loss 1.25 in 3 ms") + output("loss ... in ... ms"))
        self.expect_pass(block("seq 9") + output("1\n...\n8\n9"))
        self.expect_pass(block("seq 2") + output("1\n...\n2\n..."))
        self.expect_failure(block("seq 9") + output("1\n...\n8"), "the output differs")
        self.expect_failure(block("echo 'a*c'; echo abc") + output("a*c\na*c"), "the output differs")
        self.expect_failure(block("printf 'a\\nb\\n'") + output("a...b"), "the output differs")

    def test_numbers_of_one_run(self):
        def numbers(text):
            return "<!-- output numbers=any -->\n```text\n" + text + "\n```\n"
        self.expect_pass(block("echo 'read   1234 of f32[8, 4] in 1.25 s, 50%'") + numbers("read 7 of f32[2, 3] in 300 s, 9%"))
        self.expect_failure(block("echo 7 of i64") + numbers("7 of i32"), "the output differs")
        self.expect_pass(block("echo 1.91E+04 FLOP") + numbers("9.28E+12 FLOP"))
        self.expect_failure(block("echo seven") + numbers("7"), "the output differs")
        self.expect_failure(block("echo 7 reads") + numbers("7 writes"), "the output differs")
        self.expect_failure(block("echo 7") + output("8"), "the output differs")
        self.expect_failure(block("echo 7") + "<!-- output numbers -->\n```text\n7\n```\n", "is not understood")

    def test_space_at_line_ends_does_not_count(self):
        self.expect_pass(block("printf 'a  \\nb'") + output("a\nb   "))

    def test_a_failure_ends_its_page_and_not_the_others(self):
        (self.root / "docs" / "other.md").write_text(block("true"))
        result = self.run_page(block("exit 7") + block("exit 8"))
        self.assertEqual(result.stdout, "doc examples: 1 as documented, 1 not\n")
        self.assertIn("exit code 7", result.stderr)
        self.assertNotIn("exit code 8", result.stderr)

    def test_timeout_ends_what_was_started(self):
        result = self.run_page(block("sleep 60 & sleep 60"), "--timeout", "0.5")
        self.assertEqual(result.returncode, 1)
        self.assertIn("still running after 0.5 s", result.stderr)

    def test_markers_that_mark_nothing(self):
        self.expect_failure("<!-- run -->\n\n```sh\ntrue\n```\n", "README.md:1: the line after <!-- run --> must be ```sh")
        self.expect_failure("<!-- run -->", "README.md:1")
        self.expect_failure(output("a"), "no <!-- run --> block before")
        self.expect_failure(block("echo a") + output("a") + output("a"), "no <!-- run --> block before")
        self.expect_failure(block("true", "<!-- run twice -->"), "'twice' is not understood")
        self.expect_failure("<!-- run -->\n```sh\ntrue\n", "not closed")

    def test_listing_must_be_the_file(self):
        (self.root / "docs" / "a.cpp").write_text("int a;\n\nint b;\n")
        listing = "<!-- file docs/a.cpp -->\n```cpp\nint a;\n\nint b;\n```\n"
        self.expect_pass(listing)
        self.expect_pass(listing + block("true"), count=2)
        self.expect_failure(listing.replace("int b;\n", ""), "README.md:2: the block is not the file docs/a.cpp",
                            "+int b;")
        self.expect_failure(listing.replace("int a", "long a"), "-long a;", "+int a;")
        self.expect_failure(listing.replace("docs/a.cpp", "docs/b.cpp"), "README.md:2", "No such file")
        self.expect_failure(listing.replace(" docs/a.cpp", ""), "name the file")
        self.expect_failure("<!-- file docs/a.cpp -->\n\n```cpp\n```\n", "must be ```")

    def test_the_build_folder_has_its_usual_name(self):
        self.expect_pass(block("build/release/bin/bowline-test-tool b") + output("tool b"))

    def test_nothing_to_run(self):
        self.expect_failure("no examples", "is the marker misspelt?")


if __name__ == "__main__":
    unittest.main()
