#!/usr/bin/env python3
"""Tests of scripts/install-packages.sh, with stand-ins for Debian's tools, so that nothing is ever installed."""

import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "install-packages.sh"
PACKAGES = [line.strip() for line in (ROOT / "packages.txt").read_text().splitlines()
            if line.strip() and not line.startswith("#")]


class InstallPackagesTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.bin = pathlib.Path(scratch.name)
        self.log = self.bin / "log"
        # The script finds these and the stand-ins, and no other program of this machine.
        for tool in ("bash", "env", "sed", "grep", "dirname", "sh", "cat"):
            (self.bin / tool).symlink_to(shutil.which(tool))
        self.stand_in("sleep", "exit 0")
        self.stand_in("id", "echo 0")
        self.stand_in("apt-get", f'echo "apt-get $DEBIAN_FRONTEND $*" >>{self.log}')
        self.installed(PACKAGES)

    def stand_in(self, name, script):
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def installed(self, packages):
        (self.bin / "status").write_text("".join(f"installed {package}\n" for package in packages))
        self.stand_in("dpkg-query", f"cat {self.bin}/status; exit {0 if packages == PACKAGES else 1}")

    def run_script(self, *arguments, **environment):
        result = subprocess.run([SCRIPT, *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                                env={"PATH": str(self.bin), **environment}, check=False)
        calls = self.log.read_text().splitlines() if self.log.exists() else []
        return result, calls

    def test_nothing_to_do(self):
        self.assertGreater(len(PACKAGES), 10)
        result, calls = self.run_script()
        self.assertEqual((result.returncode, result.stdout, result.stderr, calls), (0, "", "", []))

    def test_installs_exactly_what_is_missing(self):
        self.installed(PACKAGES[2:])
        result, calls = self.run_script()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(len(calls), 2)
        self.assertRegex(calls[0], "^apt-get noninteractive .* update$")
        self.assertTrue(calls[1].endswith(" install --no-install-recommends " + " ".join(PACKAGES[:2])), calls[1])

    def test_removed_package_whose_configuration_is_left_is_missing(self):
        self.installed(PACKAGES[1:])
        with (self.bin / "status").open("a") as status:
            status.write(f"config-files {PACKAGES[0]}\n")
        _, calls = self.run_script()
        self.assertTrue(calls[1].endswith(" " + PACKAGES[0]))

    def test_check_only(self):
        self.assertEqual(self.run_script("--check")[0].returncode, 0)
        self.installed(PACKAGES[1:])
        result, calls = self.run_script("--check")
        self.assertEqual((result.returncode, calls), (1, []))
        self.assertIn(f"missing packages: {PACKAGES[0]}", result.stderr)

    def test_retries_then_says_what_to_do(self):
        self.installed(PACKAGES[1:])
        self.stand_in("apt-get", f"echo failed >>{self.log}; exit 100")
        result, calls = self.run_script()
        self.assertEqual((result.returncode, len(calls)), (1, 3))
        self.assertIn(f"could not install: {PACKAGES[0]}", result.stderr)
        self.assertIn("bookworm-security", result.stderr)

    def test_user_who_is_not_root(self):
        self.installed(PACKAGES[1:])
        self.stand_in("id", "echo 1000")
        result, calls = self.run_script()
        self.assertEqual((result.returncode, calls), (1, []))
        self.assertIn(f"run 'apt-get install {PACKAGES[0]}' as root", result.stderr)

        # No terminal: sudo must not wait for a password.
        self.stand_in("sudo", f'echo "sudo $1" >>{self.log}; shift; exec "$@"')
        result, calls = self.run_script()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual([calls[0], calls[2]], ["sudo -n", "sudo -n"])

    def test_other_systems(self):
        (self.bin / "dpkg-query").unlink()
        result, _ = self.run_script()
        self.assertEqual(result.returncode, 1)
        self.assertIn("BOWLINE_SKIP_PACKAGES=1", result.stderr)
        self.assertEqual(self.run_script(BOWLINE_SKIP_PACKAGES="1")[0].returncode, 0)

    def test_another_list(self):
        wanted = self.bin / "wanted.txt"
        wanted.write_text("# a comment\nslurmd\n\nmunge\n")
        self.installed(["munge"])
        _, calls = self.run_script("--list", str(wanted))
        self.assertTrue(calls[1].endswith(" install --no-install-recommends slurmd"), calls)
        result, _ = self.run_script("--list", str(wanted), "--check")
        self.assertIn("missing packages: slurmd.", result.stderr.replace("\n", "."))
        result, _ = self.run_script("--list", str(self.bin / "none.txt"))
        self.assertEqual(result.returncode, 1)
        self.assertIn("none.txt", result.stderr)

    def test_unknown_argument(self):
        self.assertEqual(self.run_script("--chek")[0].returncode, 1)


if __name__ == "__main__":
    unittest.main()
