#!/usr/bin/env python3
"""Prints the losses of training runs side by side, from the files that `bowline run --metrics` wrote.

    compare-losses.py ONE.jsonl OTHER.jsonl...

Exit status: 0 when every run has the steps of the first and its losses and gradient norms within 1e-4 of them, relative;
1 otherwise.
"""

import json
import pathlib
import sys

TOLERANCE = 1e-4


def read(path):
    """{step: (loss, gradient norm)} of a file of metrics."""
    steps = {}
    for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            line = json.loads(text)
            if "loss" in line:
                steps[line["step"]] = (line["loss"], line["grad_norm"])
        except (ValueError, TypeError, KeyError):
            raise ValueError(f"{path}:{number}: this is no line of metrics: {text[:80]}") from None
    return steps


def main(arguments):
    if len(arguments) < 2:
        print(__doc__.strip(), file=sys.stderr)
        return 1
    paths = [pathlib.Path(argument) for argument in arguments]
    try:
        runs = [read(path) for path in paths]
    except (OSError, ValueError) as error:
        print(f"compare-losses: error: {error}", file=sys.stderr)
        return 1
    if not runs[0] or any(run.keys() != runs[0].keys() for run in runs):
        counts = ", ".join(f"'{path}' has {len(run)}" for path, run in zip(paths, runs))
        print(f"compare-losses: error: the runs have other steps: {counts}", file=sys.stderr)
        return 1
    print("step" + "".join(f"{path.stem:>12}" for path in paths))
    same = True
    for step, first in sorted(runs[0].items()):
        print(f"{step:4}" + "".join(f"{run[step][0]:12.6f}" for run in runs))
        for run in runs:
            # Written so that a NaN differs.
            same = same and all(abs(a - b) <= TOLERANCE * abs(b) for a, b in zip(run[step], first))
    print(f"losses and gradient norms {'agree within' if same else 'differ by more than'} {TOLERANCE:g}")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
