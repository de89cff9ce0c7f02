#!/usr/bin/env python3
"""Row numbers and offsets that a program computes wrongly fail the run, on however many ranks, and leave no step behind."""

import json

import tools

VOCABULARY, BATCH, SEQ = 32, 4, 8

# Twice each token is a row of the table.
TWICE = """graph.param @embed : tensor<32x8xf32> init(#graph.normal<1.0>) key("embed") role(vocabulary)
graph.param @head : tensor<32x8xf32> init(#graph.normal<0.02>) key("head") role(vocabulary)
graph.func loss @loss(%tokens: tensor<4x8xi32> {graph.limit = 32 : i64, graph.name = "tokens"},
                      %labels: tensor<4x8xi32> {graph.limit = 32 : i64, graph.name = "labels"})
    -> (tensor<f32> {graph.name = "loss_sum"}, tensor<f32> {graph.name = "token_count"}) {
  %e = graph.read @embed : tensor<32x8xf32>
  %two = arith.constant dense<2> : tensor<4x8xi32>
  %ids = arith.muli %tokens, %two : tensor<4x8xi32>
  %x = graph.gather %e[%ids] : (tensor<32x8xf32>, tensor<4x8xi32>) -> tensor<4x8x8xf32>
  %h = graph.read @head : tensor<32x8xf32>
  %l = graph.dot_general %x, %h contract [2] x [1] : (tensor<4x8x8xf32>, tensor<32x8xf32>) -> tensor<4x8x32xf32>
  %loss, %lse = graph.softmax_cross_entropy %l, %labels
      : (tensor<4x8x32xf32>, tensor<4x8xi32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  %s = graph.reduce sum %loss dims [0, 1] : (tensor<4x8xf32>) -> tensor<f32>
  %n = arith.constant dense<32.0> : tensor<f32>
  graph.return %s, %n : tensor<f32>, tensor<f32>
}
"""

GROUPED = """graph.param @embed : tensor<32x8xf32> init(#graph.normal<1.0>) key("embed") role(vocabulary)
graph.param @up : tensor<3x8x8xf32> init(#graph.normal<0.3>) key("up") role(expert)
graph.func loss @loss(%tokens: tensor<4x8xi32> {graph.limit = 32 : i64, graph.name = "tokens"},
                      %labels: tensor<4x8xi32> {graph.limit = 32 : i64, graph.name = "labels"})
    -> (tensor<f32> {graph.name = "loss_sum"}, tensor<f32> {graph.name = "token_count"}) {
  %e = graph.read @embed : tensor<32x8xf32>
  %x = graph.gather %e[%tokens] : (tensor<32x8xf32>, tensor<4x8xi32>) -> tensor<4x8x8xf32>
  %o = arith.constant dense<OFFSETS> : tensor<4xi32>
  %r = graph.reshape %x : (tensor<4x8x8xf32>) -> tensor<32x8xf32>
  %u = graph.read @up : tensor<3x8x8xf32>
  %g = graph.grouped_dot %r, %u at %o : (tensor<32x8xf32>, tensor<3x8x8xf32>, tensor<4xi32>) -> tensor<32x8xf32>
  %z = graph.reshape %g : (tensor<32x8xf32>) -> tensor<4x8x8xf32>
  %l = graph.dot_general %z, %e contract [2] x [1] : (tensor<4x8x8xf32>, tensor<32x8xf32>) -> tensor<4x8x32xf32>
  %loss, %lse = graph.softmax_cross_entropy %l, %labels
      : (tensor<4x8x32xf32>, tensor<4x8xi32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  %s = graph.reduce sum %loss dims [0, 1] : (tensor<4x8xf32>) -> tensor<f32>
  %n = arith.constant dense<32.0> : tensor<f32>
  graph.return %s, %n : tensor<f32>, tensor<f32>
}
"""


COUNTED = """graph.param @embed : tensor<32x8xf32> init(#graph.normal<1.0>) key("embed") role(vocabulary)
graph.func loss @loss(%tokens: tensor<4x8xi32> {graph.limit = 32 : i64, graph.name = "tokens"},
                      %labels: tensor<4x8xi32> {graph.limit = 32 : i64, graph.name = "labels"})
    -> (tensor<f32> {graph.name = "loss_sum"}, tensor<f32> {graph.name = "token_count"}) {
  %e = graph.read @embed : tensor<32x8xf32>
  %x = graph.gather %e[%tokens] : (tensor<32x8xf32>, tensor<4x8xi32>) -> tensor<4x8x8xf32>
  %count = arith.constant dense<COUNT> : tensor<1xi32>
  %v = graph.valid_rows %x of %count : (tensor<4x8x8xf32>, tensor<1xi32>) -> tensor<4x8x8xf32>
  %l = graph.dot_general %v, %e contract [2] x [1] : (tensor<4x8x8xf32>, tensor<32x8xf32>) -> tensor<4x8x32xf32>
  %loss, %lse = graph.softmax_cross_entropy %l, %labels
      : (tensor<4x8x32xf32>, tensor<4x8xi32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  %s = graph.reduce sum %loss dims [0, 1] : (tensor<4x8xf32>) -> tensor<f32>
  %n = arith.constant dense<32.0> : tensor<f32>
  graph.return %s, %n : tensor<f32>, tensor<f32>
}
"""


class WrongData(tools.ToolTest):
    def compile(self, program, *flags):
        source, plan = self.folder / "x.mlir", self.folder / "x.plan"
        source.write_text(program)
        tools.succeed("bowline-compile", source, "--mode", "train", *tools.ONE_THREAD, *flags, "-o", plan)
        return plan

    def tokens(self, wrong=()):
        """Tokens of which twice is a row, but for those at the places `wrong`."""
        tokens = tools.random_tokens(500, VOCABULARY // 2)
        for place in wrong:
            tokens[place] = 20
        data = self.folder / "tokens.bin"
        data.write_bytes(tools.llmc_file(tokens))
        return data

    def run_plan(self, plan, data, driver):
        """The finished run of five steps, and the numbers of steps in its metrics."""
        metrics = self.folder / "metrics.jsonl"
        metrics.unlink(missing_ok=True)
        done = tools.start("bowline-run", plan, "--driver", driver, "--data", data, "--steps", 5, "--metrics", metrics)
        lines = metrics.read_text().splitlines() if metrics.exists() else []
        return done, [json.loads(line)["step"] for line in lines]

    def expect_fault(self, says, plan, data, driver, steps=()):
        done, logged = self.run_plan(plan, data, driver)
        message = done.stderr.decode()
        self.assertEqual(done.returncode, 1, message)
        self.assertIn(says, message)
        self.assertIn("its results are of no use", message)
        self.assertEqual(logged, list(steps))
        for step in range(len(steps) + 1, 6):
            self.assertNotIn(f"step {step}/5", done.stdout.decode())

    def plans(self, program, *meshes):
        """Plans of these meshes, and one of the last of them for a device that the host cannot read."""
        for target, driver, flags in (*(("cpu", "cpu", flags) for flags in meshes),
                                      ("discrete", "discrete:seed=1", meshes[-1])):
            with self.subTest(target=target, flags=flags):
                yield self.compile(program, "--target", target, *flags), driver

    def test_row_numbers_of_a_table_on_several_ranks(self):
        # The last token of the third step's first sample is read by every rank.
        third = 2 * BATCH * SEQ + 3
        for plan, driver in self.plans(TWICE, [], ["--mesh", "tp=2"], ["--mesh", "dp=2,tp=2"]):
            done, logged = self.run_plan(plan, self.tokens(), driver)
            self.assertEqual((done.returncode, logged), (0, [1, 2, 3, 4, 5]), done.stderr)
            self.expect_fault("is 40, which is below 0 or no row of the table", plan, self.tokens([third]), driver, [1, 2])

    def test_rows_behind_a_table_that_was_padded(self):
        program = TWICE.replace("tensor<32x8xf32>", "tensor<30x8xf32>").replace("4x8x32x", "4x8x30x")
        for plan, driver in self.plans(program, [], ["--mesh", "tp=4"]):
            # 2 * 15 is none of 30 rows, and one of 32.
            tokens = tools.random_tokens(500, 15)
            tokens[3] = 15
            data = self.folder / "tokens.bin"
            data.write_bytes(tools.llmc_file(tokens))
            self.expect_fault("no row of the table", plan, data, driver)

    def test_offsets_of_rows_on_several_ranks(self):
        meshes = ([], ["--mesh", "dp=4"], ["--mesh", "dp=2"])
        for offsets, says in (("[0, 5, 9, 99]", "offset 3 of rows in groups is 99"),
                              ("[-7, 5, 9, 32]", "offset 0 of rows in groups is -7"),
                              ("[0, 19, 7, 32]", "below the one before it"),
                              ("[-2147483648, 5, 9, 32]", "offset 0 of rows in groups is -2147483648")):
            for plan, driver in self.plans(GROUPED.replace("OFFSETS", offsets), *meshes):
                self.expect_fault(says, plan, self.tokens(), driver)
        for plan, driver in self.plans(GROUPED.replace("OFFSETS", "[0, 5, 9, 32]"), *meshes):
            done, logged = self.run_plan(plan, self.tokens(), driver)
            self.assertEqual((done.returncode, logged), (0, [1, 2, 3, 4, 5]), done.stderr)

    def test_counts_of_valid_rows_on_several_ranks(self):
        for count in (-2**31, -1, 0, 3, 2**31 - 1):
            losses = []
            for plan, driver in self.plans(COUNTED.replace("COUNT", str(count)), [], ["--mesh", "dp=2"]):
                done, logged = self.run_plan(plan, self.tokens(), driver)
                self.assertEqual((done.returncode, logged), (0, [1, 2, 3, 4, 5]), done.stderr)
                metrics = (self.folder / "metrics.jsonl").read_text().splitlines()
                losses.append([json.loads(line)["loss"] for line in metrics])
            for own in losses[1:]:
                # Sums of 32 losses of about 3, in f32.
                for mine, expected in zip(own, losses[0], strict=True):
                    self.assertAlmostEqual(mine, expected, delta=3 * 32 * 2**-23)

    def test_a_step_that_failed_on_another_rank_is_not_logged(self):
        # Rank 1 has the last two samples of each step.
        second = BATCH * SEQ + 2 * SEQ + 3
        for plan, driver in self.plans(TWICE, ["--mesh", "dp=2"]):
            self.expect_fault("row number 3 is 40", plan, self.tokens([second]), driver, [1])


if __name__ == "__main__":
    tools.main()
