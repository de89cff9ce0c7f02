#!/usr/bin/env python3
"""bowline-serve under schemathesis, which makes requests from /openapi.json, right ones and wrong ones, always the same: no reply
is a 5xx, each is as the file says, wrong requests are refused and right ones are accepted.

Needs the package's command; `make check-serve` installs it."""

import os
import shutil
import subprocess
import unittest

import served_model
import tools

# Requests of the phase `fuzzing` for each operation; those of `coverage` follow from the schema.
CASES = 100
# Replaced by the check in schema_checks.py, for which see there.
WITHOUT = ["positive_data_acceptance"]


@unittest.skipUnless(shutil.which("schemathesis"), "needs schemathesis, a package of PyPI")
class ServeSchema(tools.ToolTest):
    def fuzz(self, *flags):
        weights = served_model.write_model(self.folder)
        plan = self.folder / "s.plan"
        tools.succeed("bowline-compile", weights, "--mode", "serve", "--max-context", 64, "--max-batch", 4, "--buckets",
                      "1,8,32", *tools.ONE_THREAD, "-o", plan)
        (self.folder / "keys").write_text("secret\n")
        server, port = served_model.start(self, plan, "--weights", weights, *flags)
        done = subprocess.run(
            ["schemathesis", "run", f"http://127.0.0.1:{port}/openapi.json", "--generation-deterministic", "--max-examples",
             str(CASES), "--phases", "examples,coverage,fuzzing", "--exclude-checks", ",".join(WITHOUT), "--continue-on-failure",
             "--no-color",
             *(["--header", "Authorization: Bearer secret"] if flags else [])],
            capture_output=True, text=True, check=False, cwd=self.folder,
            env={**os.environ, "SCHEMATHESIS_HOOKS": "schema_checks",
                 "PYTHONPATH": str(tools.TEST_DIR / "Execution")})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIsNone(server.poll())
        self.assertIn("9 selected / 9 total", done.stdout)
        self.assertIn("No issues found", done.stdout)
        return done.stdout

    def test_replies_are_as_the_schema_says(self):
        print(self.fuzz().rpartition("Test cases:")[2])

    def test_with_keys(self):
        print(self.fuzz("--api-key-file", self.folder / "keys").rpartition("Test cases:")[2])


if __name__ == "__main__":
    tools.main()
