"""Expects that the arena of one plan, the first argument, is no larger than that of another; both as inspected."""

import json
import sys


def arena(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)["header"]["arena_bytes"]


first, second = arena(sys.argv[1]), arena(sys.argv[2])
assert first <= second, f"{first} bytes instead of {second}"
