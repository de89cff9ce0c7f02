#!/usr/bin/env python3
"""Tests draw random numbers from seeds that are the same in every run: test/Support/test_seed.h and TEST_SEED of
test/Execution/tools.py are where they come from, and what `make check-nightly` sets."""

import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Sources of seeds that differ in every run. A test may use a clock to measure time, but not to make a seed.
FRESH = re.compile(r"random_device|getrandom|getentropy|/dev/u?random|random\.Random\(\)|default_rng\(\)|"
                   r"(?<!\w)random\.(random|randint|choice|choices|shuffle|sample|uniform|randrange|seed)\(|"
                   r"secrets\.|uuid\.uuid|(mt19937(_64)?|srand)\b[^;]*(time|clock|now|getpid)")


class FixedSeeds(unittest.TestCase):
    def test_no_test_draws_a_seed_of_its_own(self):
        files = subprocess.run(["git", "ls-files", "test"], cwd=ROOT, capture_output=True, text=True, check=True)
        found = [f"{name}:{number}: {line.strip()}" for name in files.stdout.splitlines()
                 if name.endswith((".cc", ".cpp", ".h", ".py")) and name != "test/Scripts/fixed_seeds_test.py"
                 for number, line in enumerate((ROOT / name).read_text().splitlines(), 1) if FRESH.search(line)]
        self.assertEqual(found, [], "draw from TestSeed() (test/Support/test_seed.h), or from tools.TEST_SEED in Python")

    def test_what_would_be_found(self):
        for fresh in ("std::mt19937 random(std::random_device{}());", "kills, choose = 0, random.Random()",
                      "generator = np.random.default_rng()", "port = random.randint(1, 9)",
                      "std::mt19937 random(std::chrono::steady_clock::now().time_since_epoch().count());"):
            self.assertRegex(fresh, FRESH)
        for fixed in ("std::mt19937 random(TestSeed());", "std::mt19937_64 random(7);", "random.Random(seed).choices(x)",
                      "np.random.default_rng(20240520)", "if generator.random() < 0.75"):
            self.assertNotRegex(fixed, FRESH)


if __name__ == "__main__":
    unittest.main()
