#!/usr/bin/env python3
"""A plan that stages a tensor through memory of the host: written as text, translated, checked, and run.

The weight's copy on the device goes to the host by a second stream, its memory is used for something else, and it comes
back to the same bytes before the next command reads it. Four waits order this: without any of them the checker names the
race, and the driver `discrete` computes something else, or an error, for some seed.
"""

import json
import struct
import tools

IDS = 256
PROMPT, TOKENS = "A", 12

# Token after position p: the largest element of row p of the weight.
PLAN = f"""
module @staging attributes {{
  plan.target = #plan.target<device = "cpu", arch = "x86_64", cpu = "x86-64-v2", threads = 1>, plan.seed = 0 : i64
}} {{
  module attributes {{plan.arena_bytes = 525440 : i64, plan.other_arenas = {{pinned_host = 262144 : i64}}}} {{
    %weight = plan.buffer "weight" parameter : !plan.buffer<tensor<{IDS}x{IDS}xf32>> at 0
    %tokens = plan.buffer "tokens" input : !plan.buffer<tensor<1x8xi32>> at 262144
    %position = plan.buffer "position" input : !plan.buffer<tensor<1xi32>> at 262208
    %copied = plan.buffer "copied" temporary : !plan.buffer<tensor<{IDS}x{IDS}xf32>> at 262272
    %logits = plan.buffer "logits" output : !plan.buffer<tensor<1x{IDS}xf32>> at 524416
    %staged = plan.buffer "staged" temporary in pinned_host : !plan.buffer<tensor<{IDS}x{IDS}xf32>> at 0 align 4096
    plan.state %weight key "weight" saved|weight init "zeros" : !plan.buffer<tensor<{IDS}x{IDS}xf32>>
    plan.kernel @overwrite registered "fill" config {{value = -1.000000e+00 : f64}}
      [#plan.arg<write, tensor<{IDS}x{IDS}xf32>, align 64>] cost 0.0, 262144.0
    plan.kernel @pick registered "gather_rows"
      [#plan.arg<read, tensor<{IDS}x{IDS}xf32>>, #plan.arg<read, tensor<1xi32>>, #plan.arg<write, tensor<1x{IDS}xf32>, align 64>]
      cost 0.0, 2048.0
    plan.program @generate_program timeline [0, 0] streams ["compute", "copies"] {{
      plan.segment "staging" {{
        plan.copy %weight to %copied from "test" : !plan.buffer<tensor<{IDS}x{IDS}xf32>> to !plan.buffer<tensor<{IDS}x{IDS}xf32>>
        plan.signal 0 from "test"
        plan.wait 0 on 1 from "test"
        plan.copy %copied to %staged on 1 from "test" : !plan.buffer<tensor<{IDS}x{IDS}xf32>> to !plan.buffer<tensor<{IDS}x{IDS}xf32>>
        plan.signal 1 on 1 from "test"
        plan.wait 1 from "test"
        plan.launch @overwrite(%copied) from "test" : !plan.buffer<tensor<{IDS}x{IDS}xf32>>
        plan.signal 2 from "test"
        plan.wait 2 on 1 from "test"
        plan.copy %staged to %copied on 1 from "test" : !plan.buffer<tensor<{IDS}x{IDS}xf32>> to !plan.buffer<tensor<{IDS}x{IDS}xf32>>
        plan.signal 3 on 1 from "test"
        plan.wait 3 from "test"
        plan.launch @pick(%copied, %position, %logits) from "test" : !plan.buffer<tensor<{IDS}x{IDS}xf32>>, !plan.buffer<tensor<1xi32>>, !plan.buffer<tensor<1x{IDS}xf32>>
      }}
    }}
    plan.entry generate @generate program @generate_program inputs ["tokens", "position"] limits [{IDS}, 8]
      (%tokens, %position : !plan.buffer<tensor<1x8xi32>>, !plan.buffer<tensor<1xi32>>)
      outputs ["logits"] (%logits : !plan.buffer<tensor<1x{IDS}xf32>>)
  }}
}}
"""


class Staging(tools.ToolTest):
    def setUp(self):
        super().setUp()
        self.next = [(71 * row + 13) % IDS for row in range(IDS)]
        rows = [[2.0 if column == self.next[row] else -column / IDS for column in range(IDS)] for row in range(IDS)]
        data = b"".join(struct.pack(f"<{IDS}f", *row) for row in rows)
        header = json.dumps({"weight": {"dtype": "F32", "shape": [IDS, IDS], "data_offsets": [0, len(data)]}}).encode()
        (self.folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + data)

    def translate(self, text, name):
        """The plan of the text, of which no order and no value is certified."""
        source, plan = self.folder / f"{name}.mlir", self.folder / f"{name}.plan"
        source.write_text(text)
        tools.succeed("bowline-translate", "--mlir-to-plan", source, "-o", plan)
        return plan

    def run_on(self, plan, driver):
        return tools.start("bowline-run", plan, "--weights", self.folder, "--prompt", PROMPT, "--max-new-tokens", TOKENS,
                           "--temperature", "0", "--driver", driver)

    def expected(self):
        """The bytes of the tokens after the prompt."""
        return bytes(self.next[min(len(PROMPT) + i, 8) - 1] for i in range(TOKENS))

    def test_a_tensor_comes_back_from_the_host(self):
        plan = self.translate(PLAN, "staging")
        checked = tools.succeed("bowline-check", plan).decode()
        self.assertIn("arena   262144 bytes in PinnedHost in 1 buffers: Temporary 262144\n", checked)
        self.assertEqual(checked.splitlines()[-1], "sound")
        inside = json.loads(tools.succeed("bowline-inspect", plan, "--json"))
        self.assertEqual(inside["header"]["other_arenas"], [{"role": 0, "space": "PinnedHost", "bytes": 262144}])
        staged = [buffer for buffer in inside["buffers"] if buffer["name"] == "staged"]
        self.assertEqual([(buffer["space"], buffer["alignment"]) for buffer in staged], [("PinnedHost", 4096)])
        # To text and back are the same bytes.
        text = tools.succeed("bowline-translate", "--plan-to-mlir", plan).decode()
        self.assertEqual(self.translate(text, "again").read_bytes(), plan.read_bytes())
        for driver in ["cpu", "discrete", *(f"discrete:seed={seed}" for seed in range(12))]:
            with self.subTest(driver=driver):
                done = self.run_on(plan, driver)
                self.assertEqual(done.returncode, 0, done.stderr.decode())
                self.assertTrue(done.stdout.endswith(self.expected()), (done.stdout, self.expected()))

    def test_no_wait_can_go(self):
        for event in range(4):
            with self.subTest(event=event):
                lines = PLAN.splitlines()
                without = [line for line in lines if not line.strip().startswith(f"plan.wait {event} ")]
                self.assertEqual(len(without), len(lines) - 1)
                plan = self.translate("\n".join(without), f"without-{event}")
                checked = tools.start("bowline-check", plan)
                self.assertEqual(checked.returncode, 2)
                self.assertIn(b"the proof of no race fails", checked.stderr)
                self.assertTrue(any(self.goes_wrong(plan, seed) for seed in range(50)), "50 seeds find nothing")

    def goes_wrong(self, plan, seed):
        done = self.run_on(plan, f"discrete:seed={seed}")
        return done.returncode != 0 or not done.stdout.endswith(self.expected())

    def test_only_copies_reach_the_host(self):
        text = PLAN.replace("plan.launch @overwrite(%copied)", "plan.launch @overwrite(%staged)")
        source = self.folder / "wrong.mlir"
        source.write_text(text)
        done = tools.start("bowline-translate", "--mlir-to-plan", source, "-o", self.folder / "wrong.plan")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"buffer 'staged' is in memory space PinnedHost, which kernels do not reach", done.stderr)
        self.assertFalse((self.folder / "wrong.plan").exists())


if __name__ == "__main__":
    tools.main()
