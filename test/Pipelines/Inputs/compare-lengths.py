"""Compares how long steps take in predicted timelines: FAST ends before USUAL, and SLOW not after USUAL."""

import json
import sys


def end(path):
    with open(path) as file:
        events = json.load(file)
    events = events["traceEvents"] if isinstance(events, dict) else events
    return max(event["ts"] + event["dur"] for event in events if event["ph"] == "X")


fast, usual, slow = map(end, sys.argv[1:])
assert 2 * fast < usual, (fast, usual)
assert slow <= 1.000001 * usual, (slow, usual)
