#!/usr/bin/env python3
"""Executed plans against the recorded runs of test/oracle: every step's loss and gradient norm, to 1e-4 relative."""

import json

import tools

TOLERANCE = 1e-4


class Oracle(tools.ToolTest):
    def test_every_run(self):
        runs = json.loads((tools.ORACLE / "runs.json").read_text())
        self.assertTrue(runs["runs"])
        for index, run in enumerate(runs["runs"]):
            with self.subTest(run["name"]):
                self.check(run, tools.ORACLE / runs["data"], ["--threads", "2"] if index == 0 else tools.ONE_THREAD)

    def check(self, run, data, flags_of_test):
        plan, metrics = self.folder / f"{run['name']}.plan", self.folder / f"{run['name']}.jsonl"
        model = tools.MODELS / run["model"]
        flags = [text for key, value in run["options"].items() for text in (f"--{key}", str(value))]
        tools.succeed("bowline-compile", model, "--mode", "train", *flags, *flags_of_test, "-o", plan)
        self.assertIn(b"sound", tools.succeed("bowline-check", plan))
        tools.succeed("bowline-run", plan, "--data", data, "--steps", run["steps"], "--weights", model, "--metrics",
                      metrics, "--quiet")
        actual = [json.loads(line) for line in metrics.read_text().splitlines()]
        recorded = [json.loads(line) for line in (tools.ORACLE / f"{run['name']}.jsonl").read_text().splitlines()]
        self.assertEqual([line["step"] for line in actual], list(range(1, run["steps"] + 1)))
        self.assertEqual([line["step"] for line in recorded], list(range(1, run["steps"] + 1)))
        worst = {}
        for key in ("loss", "grad_norm", "lr"):
            worst[key] = 0.0
            for got, want in zip(actual, recorded):
                difference = abs(got[key] - want[key]) / abs(want[key])
                worst[key] = max(worst[key], difference)
                # Not "greater": a NaN must fail too.
                self.assertTrue(difference <= TOLERANCE,
                                f"{key} of step {want['step']} is {got[key]}, recorded is {want[key]}")
        print(f"{run['name']}: worst relative difference " +
              ", ".join(f"{key} {value:.1e}" for key, value in worst.items()), flush=True)


if __name__ == "__main__":
    tools.main()
