//===- RankInterpretersTest.cpp - Arguments of interpreters of several ranks
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Interp/DistributedInterpreter.h"
#include "compiler/Interp/PlanInterpreter.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "test/Unit/Interp/OpHarness.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::test;
using ::testing::HasSubstr;

static OwningOpRef<ModuleOp> parse(StringRef text) {
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, ParserConfig(&context()));
  EXPECT_TRUE(module);
  return module;
}

/// A tensor with the elements 1, 2, ...
static HostTensor counted(Shape shape) {
  HostTensor tensor(std::move(shape));
  for (auto [i, element] : llvm::enumerate(tensor.data))
    element = static_cast<double>(i + 1);
  return tensor;
}

/// The diagnostics of `action`, which must fail.
static std::string failureOf(function_ref<LogicalResult()> action) {
  std::string message;
  ScopedDiagnosticHandler handler(&context(), [&](Diagnostic &diagnostic) { message += diagnostic.str() + "\n"; });
  EXPECT_TRUE(failed(action()));
  return message;
}

TEST(DistributedInterpreterTest, TakesExactlyTheArgumentsOfFunctionsAndEntries) {
  OwningOpRef<ModuleOp> module = parse(R"mlir(
    dist.mesh @mesh ["dp"] [2]
    graph.func @twice(%x: tensor<2xf32> {dist.sharding = #dist.sharding<[{}]>}) -> tensor<2xf32> {
      %y = arith.addf %x, %x : tensor<2xf32>
      graph.return %y : tensor<2xf32>
    }
    graph.func @ignore(%y: tensor<2xf32> {dist.sharding = #dist.sharding<[{}]>}) {
      graph.return
    }
    graph.entry @run [@ignore, @twice] repeat [1, 1]
  )mlir");
  ASSERT_TRUE(module);
  DistributedInterpreter ranks(*module);
  HostTensor x = counted({2});
  auto one = ranks.run("twice", {x});
  ASSERT_TRUE(succeeded(one));
  EXPECT_EQ(one->front().data, (std::vector<double>{2, 4}));
  EXPECT_TRUE(succeeded(ranks.run("run", {x, x})));
  EXPECT_THAT(failureOf([&]() -> LogicalResult { return ranks.run("twice", {}); }),
              HasSubstr("takes 1 arguments but got 0"));
  EXPECT_THAT(failureOf([&]() -> LogicalResult { return ranks.run("twice", {x, x}); }),
              HasSubstr("takes 1 arguments but got 2"));
  EXPECT_THAT(failureOf([&]() -> LogicalResult { return ranks.run("run", {x}); }),
              HasSubstr("takes 2 arguments but got 1"));
  EXPECT_THAT(failureOf([&]() -> LogicalResult { return ranks.run("run", {x, x, x}); }),
              HasSubstr("takes 2 arguments but got 3"));
}

namespace {

class PlanInterpreterTest : public testing::Test {
protected:
  /// Rank 0 has rows 0 and 1 of "w", rank 1 the third one and a row of padding; both have both slots of "x" whole.
  OwningOpRef<ModuleOp> module = parse(R"mlir(
    dist.mesh @mesh ["dp"] [2]
    module {
    %w = plan.buffer "w" parameter : !plan.buffer<tensor<2x2xf32>> at 0
      layout <global_shape = [3, 2], view = [], dim_shardings = [["dp"], []], flat_axes = []>
    %x = plan.buffer "x" input : !plan.buffer<tensor<4xf32>> at 64 slots 2 stride 64
    plan.state %w key "w" trained|saved|weight init "fill(0)" : !plan.buffer<tensor<2x2xf32>>
    plan.program @idle timeline [] {
    }
    plan.entry custom @run program @idle inputs ["x"] limits [0] (%x : !plan.buffer<tensor<4xf32>>) outputs [] ()
    }
  )mlir");
  KernelBodies bodies;
  PlanInterpreter ranks{*module, bodies, graph::Arithmetic::reals()};
};

} // namespace

TEST_F(PlanInterpreterTest, VariablesHaveTheirGlobalShape) {
  HostTensor value = counted({3, 2});
  ASSERT_TRUE(succeeded(ranks.setVariable("w", value)));
  auto back = ranks.getVariable("w");
  ASSERT_TRUE(succeeded(back));
  EXPECT_EQ(back->shape, value.shape);
  EXPECT_EQ(back->data, value.data);
  // As many elements in other dimensions, the shape on a rank, the padded one, and one dimension less.
  for (const Shape &shape : {Shape{2, 3}, Shape{2, 2}, Shape{4, 2}, Shape{6}})
    EXPECT_THAT(failureOf([&] { return ranks.setVariable("w", counted(shape)); }),
                HasSubstr("'w' has the global shape [3, 2], but was given a value of shape ["));
  back = ranks.getVariable("w");
  ASSERT_TRUE(succeeded(back));
  EXPECT_EQ(back->data, value.data);
}

TEST_F(PlanInterpreterTest, InputsHaveTheShapeOfAllSlots) {
  PlanInterpreter::Inputs inputs;
  inputs["x"] = counted({2, 4});
  EXPECT_TRUE(succeeded(ranks.run("run", inputs)));
  for (const Shape &shape : {Shape{4, 2}, Shape{4, 4}, Shape{4}, Shape{8}}) {
    inputs["x"] = counted(shape);
    EXPECT_THAT(failureOf([&]() -> LogicalResult { return ranks.run("run", inputs); }),
                HasSubstr("'x' has the global shape [2, 4], but was given a value of shape ["));
  }
}
