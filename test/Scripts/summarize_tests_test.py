#!/usr/bin/env python3
"""Tests of scripts/summarize-tests.py."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "summarize-tests.py"

PASS = '<testcase name="{}" status="run"/>'
FAIL = '<testcase name="{}" status="fail"><failure message=""/></testcase>'
SKIP = '<testcase name="{}" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/></testcase>'
NOT_BUILT = '<testcase name="{}" status="notrun"><skipped message="Unable to find executable"/></testcase>'


def suite(*cases):
    return "<testsuite>" + "".join(case.format(f"t{i}") for i, case in enumerate(cases)) + "</testsuite>"


class SummarizeTestsTest(unittest.TestCase):
    def summarize(self, files, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            for name, content in files.items():
                path = pathlib.Path(folder) / name
                path.parent.mkdir(exist_ok=True)
                path.write_text(content)
            result = subprocess.run([sys.executable, SCRIPT, folder, *arguments], capture_output=True, text=True,
                                    check=False)
        return result.stdout.splitlines()[-1] if result.stdout else "", result

    def test_entries_count_with_their_cases(self):
        line, result = self.summarize({
            "ctest.xml": "<testsuite>" + PASS.format("base_test") + PASS.format("lit") + PASS.format("script") +
                         "</testsuite>",
            "gtest/base_test.xml": suite(PASS, PASS, PASS, SKIP), "lit.xml": suite(PASS, PASS)})
        self.assertEqual(line, "6 passed, 0 failed")
        self.assertEqual(result.returncode, 0)

    def test_failures_are_named_and_counted(self):
        line, result = self.summarize({
            "ctest.xml": "<testsuite>" + FAIL.format("base_test") + FAIL.format("lit") + FAIL.format("script") +
                         "</testsuite>",
            "gtest/base_test.xml": suite(PASS, FAIL), "lit.xml": suite(PASS, FAIL, FAIL)})
        self.assertEqual(line, "2 passed, 4 failed")
        self.assertIn("failed: base_test, lit, script", result.stdout)
        self.assertEqual(result.returncode, 1)

    def test_crash_is_a_failure_although_no_case_failed(self):
        files = {"ctest.xml": "<testsuite>" + FAIL.format("base_test") + "</testsuite>"}
        self.assertEqual(self.summarize(files)[0], "0 passed, 1 failed")
        self.assertEqual(self.summarize({**files, "gtest/base_test.xml": suite(PASS)})[0], "1 passed, 1 failed")
        self.assertEqual(self.summarize({**files, "gtest/base_test.xml": "<testsuite><tes"})[0], "0 passed, 1 failed")

    def test_skipped_counts_neither_way_but_not_built_is_a_failure(self):
        line, result = self.summarize({"ctest.xml": suite(PASS, SKIP)})
        self.assertEqual((line, result.returncode), ("1 passed, 0 failed", 0))
        line, result = self.summarize({"ctest.xml": suite(PASS, NOT_BUILT)})
        self.assertEqual((line, result.returncode), ("1 passed, 1 failed", 1))

    def test_steps(self):
        files = {"ctest.xml": suite(PASS)}
        self.assertEqual(self.summarize(files, "--step", "runtime-only=passed")[0], "2 passed, 0 failed")
        line, result = self.summarize(files, "--step", "runtime-only=failed")
        self.assertEqual((line, result.returncode), ("1 passed, 1 failed", 1))
        self.assertIn("failed: runtime-only", result.stdout)
        self.assertEqual(self.summarize(files, "--step", "runtime-only=maybe")[1].returncode, 2)

    def test_nothing_ran(self):
        line, result = self.summarize({"ctest.xml": suite()})
        self.assertEqual((line, result.returncode), ("0 passed, 0 failed", 1))
        line, result = self.summarize({})
        self.assertEqual((line, result.returncode), ("0 passed, 1 failed", 1))


if __name__ == "__main__":
    unittest.main()
