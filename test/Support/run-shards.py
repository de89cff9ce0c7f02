#!/usr/bin/env python3
"""Runs a GoogleTest program in N processes at once, each of which has a part of its cases, for tests that mostly wait.

    run-shards.py N PROGRAM [ARGUMENT]...

Their output comes one after the other, and GTEST_OUTPUT=xml:FILE has the cases of all. Fails where one of them fails."""

import os
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree


def main():
    count, command = int(sys.argv[1]), sys.argv[2:]
    kind, _, report = os.environ.get("GTEST_OUTPUT", "").partition(":")
    merged = ElementTree.Element("testsuites")
    with tempfile.TemporaryDirectory(prefix="bowline-shards-") as folder:
        shards = []
        for number in range(count):
            base = pathlib.Path(folder) / str(number)
            environment = {**os.environ, "GTEST_TOTAL_SHARDS": str(count), "GTEST_SHARD_INDEX": str(number),
                           "GTEST_OUTPUT": f"xml:{base}.xml"}
            with open(f"{base}.log", "wb") as log:
                shards.append(subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment))
        codes = [shard.wait() for shard in shards]
        for number in range(count):
            base = pathlib.Path(folder) / str(number)
            sys.stdout.flush()
            sys.stdout.buffer.write(pathlib.Path(f"{base}.log").read_bytes())
            # A shard that crashed has none.
            if os.path.exists(f"{base}.xml"):
                merged.extend(ElementTree.parse(f"{base}.xml").getroot())
    if kind == "xml":
        pathlib.Path(report).parent.mkdir(parents=True, exist_ok=True)
        ElementTree.ElementTree(merged).write(report)
    failed = [f"shard {number} of {count}: exit code {code}" for number, code in enumerate(codes) if code != 0]
    if failed:
        sys.exit("\n".join(failed))


if __name__ == "__main__":
    main()
