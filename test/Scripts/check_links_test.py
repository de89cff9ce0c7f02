#!/usr/bin/env python3
"""Tests of scripts/check-links.py: which links lead somewhere."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "check-links.py"

GOOD = """\
# The page

## What it says, and `why`

[file](other.md) [folder](sub) [up](../README.md) [here](#the-page) [there](other.md#a-heading) [web](https://example.com/x)
[code](#what-it-says-and-why) [again](other.md#a-heading-1) [`name`](other.md) [source](sub/a.h) `[no](link.md)`

```sh
# No heading
echo '[no](link.md)'
```
"""

OTHER = "# A heading\n\n## A heading\n"

# (line of the page, words of the message)
BROKEN = (
    ("[a](missing.md)", "links to 'missing.md', which is not there"),
    ("text [`a`](sub/missing.h), text", "links to 'sub/missing.h'"),
    ("[a](../../../etc)", "which is not there"),
    ("[a](#no-heading)", "docs/page.md has no such heading"),
    ("[a](other.md#another)", "docs/other.md has no such heading"),
)


class CheckLinksTest(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.root = pathlib.Path(self.scratch.name).resolve()
        for file, text in (("README.md", "[page](docs/page.md)\n"), ("docs/page.md", GOOD), ("docs/other.md", OTHER),
                           ("docs/sub/a.h", ""), ("build/copy.md", "[a](missing.md)\n")):
            path = self.root / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def check(self):
        return subprocess.run([sys.executable, SCRIPT, "--root", self.root], capture_output=True, text=True, check=False)

    def test_good_links(self):
        result = self.check()
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("3 pages", result.stdout)

    def test_broken_links(self):
        line = GOOD.count("\n") + 1
        for text, words in BROKEN:
            with self.subTest(text=text):
                (self.root / "docs/page.md").write_text(GOOD + text + "\n")
                result = self.check()
                self.assertEqual(result.returncode, 1)
                self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
                self.assertTrue(result.stderr.startswith(f"docs/page.md:{line}: "), result.stderr)
                self.assertIn(words, result.stderr)

    def test_no_pages(self):
        for page in self.root.rglob("*.md"):
            page.unlink()
        self.assertEqual(self.check().returncode, 1)


if __name__ == "__main__":
    unittest.main()
