//===- StepEquivalenceTest.cpp - Every step keeps what models compute, under every kind of strategy
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Parser/Parser.h"
#include "test/Unit/Equivalence/SmallPipelines.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::test;

namespace {

class StepEquivalence : public SmallPipelines, public testing::WithParamInterface<SmallCase> {};

/// Products of rows in groups, which no model has yet. Row 5 is of no group.
constexpr const char *kExperts = R"(
graph.param @up : tensor<2x4x3xf32> init(#graph.normal<0.5>) key("up")
graph.param @down : tensor<2x3x4xf32> init(#graph.normal<0.5>) key("down")
graph.func loss @loss(%x: tensor<6x4xf32> {graph.name = "x"})
    -> (tensor<f32> {graph.name = "loss_sum"}, tensor<f32> {graph.name = "positions"}) {
  %offsets = arith.constant dense<[0, 2, 5]> : tensor<3xi32>
  %up = graph.read @up : tensor<2x4x3xf32>
  %h = graph.grouped_dot %x, %up at %offsets : (tensor<6x4xf32>, tensor<2x4x3xf32>, tensor<3xi32>) -> tensor<6x3xf32>
  %a = graph.silu %h : tensor<6x3xf32>
  %down = graph.read @down : tensor<2x3x4xf32>
  %y = graph.grouped_dot %a, %down at %offsets : (tensor<6x3xf32>, tensor<2x3x4xf32>, tensor<3xi32>) -> tensor<6x4xf32>
  %squares = arith.mulf %y, %y : tensor<6x4xf32>
  %sum = graph.reduce sum %squares dims [0, 1] : (tensor<6x4xf32>) -> tensor<f32>
  %positions = arith.constant dense<6.0> : tensor<f32>
  graph.return %sum, %positions : tensor<f32>, tensor<f32>
})";

} // namespace

TEST_P(StepEquivalence, HoldsDownToMemory) {
  OwningOpRef<ModuleOp> module = build(GetParam());
  ASSERT_TRUE(module);
  EquivalenceChecker checker;
  ASSERT_TRUE(succeeded(verifySteps(*module, options(GetParam()), Phase::Input, Phase::Plan, checker)));
  const EquivalenceChecker::Summary &summary = checker.summary();
  EXPECT_GE(summary.steps.size(), GetParam().generates ? 9u : 18u);
  EXPECT_EQ(summary.undefined, 0);
  EXPECT_GT(summary.elements, 0);
  EXPECT_GT(summary.gradients, GetParam().generates ? -1 : 10);
}

INSTANTIATE_TEST_SUITE_P(Strategies, StepEquivalence, testing::ValuesIn(kSmallCases),
                         [](const auto &info) { return std::string(info.param.name); });

/// No optimisation is left out: one that never has anything to do here would be compared with nothing.
TEST_F(SmallPipelines, EveryOptimisationIsReached) {
  std::set<std::string> reached;
  for (const SmallCase &c : kSmallCases) {
    OwningOpRef<ModuleOp> module = build(c);
    ASSERT_TRUE(module);
    EquivalenceChecker checker;
    ASSERT_TRUE(succeeded(verifySteps(*module, options(c), Phase::Input, Phase::Plan, checker)));
    reached.insert(checker.summary().steps.begin(), checker.summary().steps.end());
  }
  OwningOpRef<ModuleOp> experts = parseSourceString<ModuleOp>(kExperts, &context);
  ASSERT_TRUE(experts && succeeded(addStrategyFlags(*experts, StrategyFlags())));
  EquivalenceChecker checker;
  ASSERT_TRUE(succeeded(verifySteps(*experts, options(SmallCase{}), Phase::Input, Phase::Plan, checker)));
  reached.insert(checker.summary().steps.begin(), checker.summary().steps.end());
  // Without room, all that could be computed ahead is marked.
  const SmallCase repeated{.name = "", .model = "llama-tiny", .mesh = "dp=2", .microbatches = 2};
  PipelineOptions limited = options(repeated);
  limited.memoryLimit = 1;
  OwningOpRef<ModuleOp> module = build(repeated);
  EquivalenceChecker withLimit;
  ASSERT_TRUE(module && succeeded(verifySteps(*module, limited, Phase::Input, Phase::Plan, withLimit)));
  reached.insert(withLimit.summary().steps.begin(), withLimit.summary().steps.end());
  for (const Step &step : pipelineSteps(PipelineOptions()))
    if (step.optional && step.name != "merge-fusions") // which is a switch of group-fusions
      EXPECT_TRUE(reached.count(step.name.str())) << step.name.str();
}
