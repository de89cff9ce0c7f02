#!/usr/bin/env python3
"""Tests of the verdicts of .ci/run: its commands are stand-ins, which end as a test says."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Without the time limit, whose status the command of a test gives.
TIMEOUT = '#!/usr/bin/env bash\nshift 2\nexec "$@"\n'
COMMAND = """#!/usr/bin/env bash
name="$(basename "$0") $1"
echo "$name ${*:2}" >> "$CALLS"
case "$name" in
%s
esac
"""


class CiRun(unittest.TestCase):
    def run_ci(self, **status_of):
        """Verdicts of the steps; each keyword says with which status a command ends that would end with 0."""
        with tempfile.TemporaryDirectory() as scratch:
            root = pathlib.Path(scratch)
            for folder in (".ci", "bin", "scripts"):
                (root / folder).mkdir()
            shutil.copy(ROOT / ".ci/run", root / ".ci/run")
            names = {"format": "make format-check", "fuzz": "make fuzz", "sanitized": "sanitize.sh runtime",
                     "build": "make build", "tidy": "tidy.py --last-commit"}
            command = COMMAND % "\n".join(f'"{names[name]}") exit {status} ;;' for name, status in status_of.items())
            for file, text in (("bin/timeout", TIMEOUT), ("bin/make", command), ("scripts/tidy.py", command),
                               ("scripts/sanitize.sh", command)):
                (root / file).write_text(text)
                (root / file).chmod(0o755)
            variables = {name: value for name, value in os.environ.items() if name != "CI_BASE"}
            done = subprocess.run([root / ".ci/run"], capture_output=True, text=True, check=False, env={
                **variables, "PATH": f"{root / 'bin'}:{os.environ['PATH']}", "CALLS": str(root / "calls")})
            self.assertEqual(done.returncode, 0, done.stderr)
            last = (root / "calls").read_text().splitlines()[-1]
            self.assertTrue(last.startswith("make check STEPS=--step "), last)
            return dict(step.split("=") for step in last.split("STEPS=")[1].split() if step != "--step"), done.stdout

    def test_steps_pass(self):
        self.assertEqual(self.run_ci()[0], dict.fromkeys(("format", "fuzz", "sanitized", "tidy"), "passed"))

    def test_a_step_that_reaches_its_limit_fails(self):
        for status in (124, 137):
            verdicts, said = self.run_ci(sanitized=status)
            self.assertEqual(verdicts, {"format": "passed", "fuzz": "passed", "sanitized": "failed", "tidy": "passed"})
            self.assertRegex(said, r"(?m)^ci: sanitized had not ended after \d+ minutes$")

    def test_what_fails_does_not_end_the_run(self):
        verdicts, said = self.run_ci(format=2, tidy=1)
        self.assertEqual(verdicts, {"format": "failed", "fuzz": "passed", "sanitized": "passed", "tidy": "failed"})
        self.assertNotIn("had not ended", said)

    def test_what_could_not_look_is_skipped(self):
        self.assertEqual(self.run_ci(tidy=77)[0]["tidy"], "skipped")

    def test_nothing_is_looked_at_where_nothing_builds(self):
        self.assertNotIn("tidy", self.run_ci(build=2)[0])


if __name__ == "__main__":
    unittest.main()
