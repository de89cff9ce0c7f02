#!/usr/bin/env python3
"""The plans of the test models, and the bits that they compute, are those that test/Baselines recorded."""

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
        levels = [level for level in baselines.levels_of_machine() if level in recorded["results"]]
        self.assertTrue(levels, "nobody recorded results for a level that this machine has; `make baselines` does")
        recorded["results"] = {level: recorded["results"][level] for level in levels}
        difference = differences(name, recorded, baselines.measure(name, levels))
        self.assertEqual(difference, "", f"{name}\n{difference}{HINT}")


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

    def test_results_of_other_levels_stay_while_those_of_this_machine_do(self):
        old = {"flags": "", "plan": 1, "results": {"low": "l", "here": "a", "there": "b"}}
        self.assertEqual(baselines.merged(old, {"flags": "", "plan": 2, "results": {"low": "l", "here": "a"}}),
                         {"flags": "", "plan": 2, "results": {"low": "l", "here": "a", "there": "b"}})
        for new in ({"flags": "", "plan": 1, "results": {"low": "l", "here": "c"}},
                    {"flags": "x", "plan": 1, "results": {"here": "a"}},
                    {"flags": "", "plan": 2, "results": {"elsewhere": "d"}}):
            self.assertEqual(baselines.merged(old, new), new)
        new = {"flags": "", "plan": 1, "results": {"elsewhere": "d"}}
        self.assertEqual(baselines.merged(old, new), {**old, "results": {**old["results"], "elsewhere": "d"}})
        self.assertEqual(baselines.merged(None, new), new)

    def test_levels_differ_in_bits(self):
        """Otherwise nothing would say that a machine was taken for another."""
        for name in baselines.RUNS:
            results = baselines.recorded(name)["results"]
            if "bf16" in name:
                self.assertNotEqual(results["x86-64-v4"], results["x86-64-v4+avx512bf16"], name)
            self.assertNotEqual(results["x86-64-v3"], results["x86-64-v4"], name)


if __name__ == "__main__":
    tools.main()
