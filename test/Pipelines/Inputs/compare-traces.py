"""Compares a predicted trace with overlap, the first argument, to one without."""

import json
import sys


def load(path):
    with open(path, encoding="utf-8") as file:
        return [event for event in json.load(file)["traceEvents"] if event["ph"] == "X"]


def busy(events):
    return sum(event["dur"] for event in events if event["cat"] != "wait")


def end(events):
    return max(event["ts"] + event["dur"] for event in events)


overlap, serial = load(sys.argv[1]), load(sys.argv[2])
assert abs(busy(overlap) - busy(serial)) < 1e-6 * busy(serial), (busy(overlap), busy(serial))
assert abs(end(serial) - busy(serial)) < 1e-6 * end(serial), (end(serial), busy(serial))
assert end(overlap) < 0.95 * end(serial), (end(overlap), end(serial))
# Nothing runs at the same time as anything else of its stream.
for thread in {event["tid"] for event in overlap}:
    last = 0.0
    for event in (event for event in overlap if event["tid"] == thread):
        assert event["ts"] >= last - 1e-6, (event, last)
        last = event["ts"] + event["dur"]
