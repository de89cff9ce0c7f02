#!/usr/bin/env python3
"""The plans of the test models, and what they compute to the bit, are those that test/Baselines recorded."""

import difflib
import json

import baselines
import tools

HINT = "\nwhere this is meant, `make baselines` records it; say in the commit why it changed"


def differences(name, recorded, measured):
    lines = (baselines.text_of(record).splitlines() for record in (recorded, measured))
    return "\n".join(difflib.unified_diff(*lines, f"{name}, recorded", f"{name}, now", lineterm="", n=2))


class Baselines(tools.ToolTest):
    def check(self, name):
        recorded = baselines.recorded(name)
        self.assertIsNotNone(recorded, f"there is no {baselines.path_of(name)}; run `make baselines`")
        measured, machine = baselines.measure(name)
        known = machine in recorded["results"]
        recorded["results"] = {machine: recorded["results"][machine]} if known else {}
        if not known:
            results, measured["results"] = measured["results"][machine], {}
            self.assertEqual(len(results["metrics"]), baselines.STEPS + 1)
        difference = differences(name, recorded, measured)
        self.assertEqual(difference, "", f"{name}\n{difference}{HINT}")
        if not known:
            self.skipTest(f"the plan is as recorded, but nobody recorded results on {machine}; `make baselines` does")


def test_of(name):
    return lambda self: self.check(name)


for run in baselines.RUNS:
    setattr(Baselines, f"test_{run}", test_of(run))


class Recording(tools.ToolTest):
    def test_each_file_is_of_a_run(self):
        self.assertEqual(sorted(path.stem for path in baselines.FOLDER.iterdir()), sorted(baselines.RUNS))

    def test_what_a_step_changes_is_seen(self):
        recorded = baselines.recorded("llama-tiny")["plan"]
        plan = self.folder / "x.plan"
        for step, seen in (("merge-fusions", "kernels"), ("donate-buffers", "arena_bytes")):
            tools.succeed("bowline-compile", tools.MODELS / "llama-tiny", *baselines.SHAPE, *tools.ONE_THREAD, "--no-codegen",
                          "--target-cpu", baselines.LEVEL, "--disable-step", step, "-o", plan)
            self.assertNotEqual(baselines.plan_of(plan)[seen], recorded[seen], step)

    def test_a_bit_of_a_tensor_changes_its_digest_alone(self):
        def write(first, metadata):
            header = json.dumps({"b": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]},
                                 "a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}, "__metadata__": metadata})
            content = len(header).to_bytes(8, "little") + header.encode() + bytes([first, 0, 0, 0, 0, 0, 0, 0])
            (self.folder / "one.safetensors").write_bytes(content)
            return baselines.digests_of(self.folder)

        (self.folder / "other.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}")
        before = write(0, {})
        self.assertEqual(write(0, {"time": "now"}), before)
        after = write(1, {})
        self.assertNotEqual(after["one.safetensors"], before["one.safetensors"])
        self.assertEqual(after["other.safetensors"], before["other.safetensors"])

    def test_results_of_other_machines_stay_while_those_of_this_one_do(self):
        old = {"flags": "", "plan": 1, "results": {"here": "a", "there": "b"}}
        self.assertEqual(baselines.merged(old, {"flags": "", "plan": 2, "results": {"here": "a"}}, "here"),
                         {"flags": "", "plan": 2, "results": {"here": "a", "there": "b"}})
        for new, machine in (({"flags": "", "plan": 1, "results": {"here": "c"}}, "here"),
                             ({"flags": "x", "plan": 1, "results": {"here": "a"}}, "here"),
                             ({"flags": "", "plan": 2, "results": {"elsewhere": "d"}}, "elsewhere")):
            self.assertEqual(baselines.merged(old, new, machine), new)
        new = {"flags": "", "plan": 1, "results": {"elsewhere": "d"}}
        self.assertEqual(baselines.merged(old, new, "elsewhere"),
                         {"flags": "", "plan": 1, "results": {"here": "a", "there": "b", "elsewhere": "d"}})
        self.assertEqual(baselines.merged(None, new, "elsewhere"), new)


if __name__ == "__main__":
    tools.main()
