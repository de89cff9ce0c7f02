#!/usr/bin/env python3
"""Tests of scripts/summarize-tests.py."""

import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "summarize-tests.py"

PASS = '<testcase name="{}" status="run"/>'
FAIL = '<testcase name="{}" status="fail"><failure message=""/></testcase>'
SKIP = '<testcase name="{}" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/></testcase>'
GTEST_SKIP = '<testcase name="{}" status="run" result="skipped"><skipped message="no IPv6"/></testcase>'
GTEST_DISABLED = '<testcase name="{}" status="notrun" result="suppressed"/>'
LIT_UNSUPPORTED = '<testcase name="{}"><skipped message="Missing required feature(s): amx"/></testcase>'
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
        self.assertEqual(line, "6 passed, 0 failed, 1 skipped")
        self.assertEqual(result.returncode, 0)

    def test_each_kind_of_test_says_what_it_skipped(self):
        names = ("some-test", "lit", "processes")
        line, _ = self.summarize({
            "ctest.xml": "<testsuite>" + "".join(map(PASS.format, names)) + "</testsuite>",
            "gtest/some-test.xml": suite(PASS, GTEST_SKIP, GTEST_DISABLED), "lit.xml": suite(PASS, LIT_UNSUPPORTED),
            "unittest/processes.xml": suite(PASS, PASS, LIT_UNSUPPORTED)})
        self.assertEqual(line, "4 passed, 0 failed, 4 skipped")

    def test_the_ten_slowest_are_printed(self):
        cases = "".join(f'<testcase name="t{i}" status="run" time="{i / 2}"/>' for i in range(12))
        _, result = self.summarize({"ctest.xml": f"<testsuite>{cases}</testsuite>"})
        lines = result.stdout.splitlines()
        at = lines.index("slowest:")
        self.assertEqual([line.split() for line in lines[at + 1:at + 11]],
                         [[str(i / 2), "s", f"t{i}"] for i in range(11, 1, -1)])

    def test_the_line_before_says_what_the_machine_has(self):
        has = ("^this machine: AVX512-BF16 (yes|no), AMX (yes|no), network namespaces (yes|no), IPv6 (yes|no), "
               "NVIDIA card (yes|no)")
        for limit, more in (("", "$"), ("x86-64-v3", "; taken for x86-64-v3$")):
            with unittest.mock.patch.dict("os.environ", BOWLINE_TARGET_CPU=limit):
                _, result = self.summarize({"ctest.xml": suite(PASS)})
            self.assertRegex(result.stdout.splitlines()[-2], has + more)

    def test_failures_are_named_and_counted(self):
        line, result = self.summarize({
            "ctest.xml": "<testsuite>" + FAIL.format("base_test") + FAIL.format("lit") + FAIL.format("script") +
                         "</testsuite>",
            "gtest/base_test.xml": suite(PASS, FAIL), "lit.xml": suite(PASS, FAIL, FAIL)})
        self.assertEqual(line, "2 passed, 4 failed, 0 skipped")
        self.assertIn("failed: base_test, lit, script", result.stdout)
        self.assertEqual(result.returncode, 1)

    def test_crash_is_a_failure_although_no_case_failed(self):
        files = {"ctest.xml": "<testsuite>" + FAIL.format("base_test") + "</testsuite>"}
        self.assertEqual(self.summarize(files)[0], "0 passed, 1 failed, 0 skipped")
        self.assertEqual(self.summarize({**files, "gtest/base_test.xml": suite(PASS)})[0], "1 passed, 1 failed, 0 skipped")
        self.assertEqual(self.summarize({**files, "gtest/base_test.xml": "<testsuite><tes"})[0], "0 passed, 1 failed, 0 skipped")

    def test_skipped_is_counted_but_not_built_is_a_failure(self):
        line, result = self.summarize({"ctest.xml": suite(PASS, SKIP)})
        self.assertEqual((line, result.returncode), ("1 passed, 0 failed, 1 skipped", 0))
        line, result = self.summarize({"ctest.xml": suite(SKIP)})
        self.assertEqual((line, result.returncode), ("0 passed, 0 failed, 1 skipped", 1))
        line, result = self.summarize({"ctest.xml": suite(PASS, NOT_BUILT)})
        self.assertEqual((line, result.returncode), ("1 passed, 1 failed, 0 skipped", 1))

    def test_steps(self):
        files = {"ctest.xml": suite(PASS)}
        self.assertEqual(self.summarize(files, "--step", "runtime-only=passed")[0], "2 passed, 0 failed, 0 skipped")
        self.assertEqual(self.summarize(files, "--step", "tidy=skipped")[0], "1 passed, 0 failed, 1 skipped")
        line, result = self.summarize(files, "--step", "runtime-only=failed")
        self.assertEqual((line, result.returncode), ("1 passed, 1 failed, 0 skipped", 1))
        self.assertIn("failed: runtime-only", result.stdout)
        self.assertEqual(self.summarize(files, "--step", "runtime-only=maybe")[1].returncode, 2)

    def test_nothing_ran(self):
        line, result = self.summarize({"ctest.xml": suite()})
        self.assertEqual((line, result.returncode), ("0 passed, 0 failed, 0 skipped", 1))
        line, result = self.summarize({})
        self.assertEqual((line, result.returncode), ("0 passed, 1 failed, 0 skipped", 1))


if __name__ == "__main__":
    unittest.main()
