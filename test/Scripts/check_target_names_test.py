#!/usr/bin/env python3
"""scripts/check-target-names.py on trees with one mistake each."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/check-target-names.py"


class CheckTargetNames(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.write("targets/CMakeLists.txt", "set(targets cpu toaster)\n")
        self.write("targets/toaster/description.cc", '// A toaster\nname = "toaster";\n')
        self.write("compiler/Codegen/toaster/Backend.cpp", "// for the toaster\n")
        self.write("passes/Fusion/Group.cpp", "if (target.has_epilogues) fuse();\n")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def check(self, *flags):
        return subprocess.run([sys.executable, SCRIPT, "--root", self.root, *flags], capture_output=True, text=True)

    def test_a_target_in_its_own_folders_is_right(self):
        done = self.check("--list")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, "toaster: targets/CMakeLists.txt:1: set(targets cpu toaster)\n")

    def test_a_name_elsewhere_is_found(self):
        for file, line in (("passes/Fusion/Group.cpp", 'if (device == "toaster")'),
                           ("runtime/executor/binder.cc", "constexpr int kToasterSlots = 2;"),
                           ("runtime/drivers/host/worker_stream.cc", "// A toaster has one."),
                           ("dialects/Plan/PlanOps.td", "// As on Toasters.")):
            with self.subTest(file):
                self.write(file, f"first\n{line}\n")
                done = self.check()
                self.assertEqual(done.returncode, 1)
                self.assertIn(f"{file}:2: names the target 'toaster' in 1 lines, and may in 0", done.stderr)
                (self.root / file).unlink()

    def test_a_second_registration_is_found(self):
        self.write("targets/CMakeLists.txt", "set(targets cpu toaster)\nadd_subdirectory(toaster)\n")
        self.assertIn("in 2 lines, and may in 1", self.check().stderr)

    def test_a_list_of_targets_beside_the_drivers_is_found(self):
        self.write("runtime/drivers/CMakeLists.txt", "add_subdirectory(toaster)\n")
        self.assertEqual(self.check().returncode, 0)
        self.write("runtime/drivers/CMakeLists.txt", "add_subdirectory(toaster)\nset(devices cpu toaster)\n")
        self.assertIn("runtime/drivers/CMakeLists.txt:1: names the target 'toaster' in 2 lines", self.check().stderr)


if __name__ == "__main__":
    unittest.main()
