//===- LayoutTest.cpp - From the tensor of a checkpoint to what each rank holds
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Dist/Layout.h"
#include "compiler/Interp/DistributedInterpreter.h"
#include "dialects/Graph/GraphOps.h"
#include "mlir/Parser/Parser.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <numeric>

using namespace mlir;
using namespace bowline;
using graph::HostTensor;

namespace {

class Layout : public testing::Test {
protected:
  Layout() { context.loadDialect<graph::GraphDialect, dist::DistDialect>(); }

  /// A module with the parameter "w" on a mesh of dp=2, tp=3.
  OwningOpRef<ModuleOp> parse(const std::string &type, const std::string &attributes) {
    auto module = parseSourceString<ModuleOp>(R"(dist.mesh @mesh ["dp", "tp"] [2, 3]
      graph.param @w : tensor<)" + type + R"(xf32> init(#graph.fill<0.0>) key("w") {)" +
                                                  attributes + "}",
                                              &context);
    EXPECT_TRUE(module);
    return module;
  }
  static Operation *variable(ModuleOp module) { return *module.getOps<graph::ParamOp>().begin(); }

  std::string problemOf(const std::string &type, const std::string &attributes) {
    OwningOpRef<ModuleOp> module = parse(type, attributes);
    std::string message;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) { message += diagnostic.str(); });
    EXPECT_TRUE(failed(dist::Layout::of(variable(*module))));
    return message;
  }

  MLIRContext context;
};

using Shape = SmallVector<int64_t>;

} // namespace

TEST_F(Layout, WithoutAttributesAllIsWhole) {
  OwningOpRef<ModuleOp> module = parse("4x5", "");
  FailureOr<dist::Layout> layout = dist::Layout::of(variable(*module));
  ASSERT_TRUE(succeeded(layout));
  EXPECT_EQ(layout->global, (Shape{4, 5}));
  EXPECT_EQ(layout->view, (Shape{4, 5}));
  EXPECT_EQ(layout->padded, (Shape{4, 5}));
  EXPECT_EQ(layout->local, (Shape{4, 5}));
  EXPECT_FALSE(layout->isPadded());
}

TEST_F(Layout, ViewPaddingAndCut) {
  OwningOpRef<ModuleOp> module = parse("4x3x2", R"(dist.sharding = #dist.sharding<[{"dp"}, {}, {"tp"}]>,
    dist.global_shape = array<i64: 7, 15>, dist.view = array<i64: 7, 3, 5>)");
  FailureOr<dist::Layout> layout = dist::Layout::of(variable(*module));
  ASSERT_TRUE(succeeded(layout));
  EXPECT_EQ(layout->global, (Shape{7, 15}));
  EXPECT_EQ(layout->view, (Shape{7, 3, 5}));
  EXPECT_EQ(layout->padded, (Shape{8, 3, 6}));
  EXPECT_EQ(layout->local, (Shape{4, 3, 2}));
  EXPECT_EQ(layout->axes[2].front(), "tp");
  EXPECT_TRUE(layout->isPadded());
}

TEST_F(Layout, AttributesThatContradictTheTypeAreRefused) {
  EXPECT_NE(problemOf("2x2", R"(dist.sharding = #dist.sharding<[{"tp"}, {}]>, dist.global_shape = array<i64: 7, 2>)")
                .find("dimension 0 has 6 elements on all of them, but its whole has 7"),
            std::string::npos);
  EXPECT_NE(problemOf("2x2", "dist.global_shape = array<i64: 2, 2, 1>").find("has 3 dimensions in its whole"),
            std::string::npos);
}

TEST_F(Layout, RanksHoldWhatItSays) {
  OwningOpRef<ModuleOp> module = parse("2x3x2", R"(dist.sharding = #dist.sharding<[{"dp"}, {}, {"tp"}]>,
    dist.global_shape = array<i64: 3, 15>, dist.view = array<i64: 3, 3, 5>)");
  DistributedInterpreter ranks(*module);
  HostTensor value(std::vector<int64_t>{3, 15});
  std::iota(value.data.begin(), value.data.end(), 1.0);
  ASSERT_TRUE(succeeded(ranks.setVariable("w", value)));
  FailureOr<HostTensor> back = ranks.getVariable("w");
  ASSERT_TRUE(succeeded(back));
  EXPECT_EQ(back->shape, value.shape);
  EXPECT_EQ(back->data, value.data);
  // The last rank, dp=1 and tp=2: row 2 and one of padding, columns 4, 9 and 14 and one of padding each.
  const HostTensor *last = ranks.getLocal(5, "w");
  ASSERT_NE(last, nullptr);
  EXPECT_EQ(last->data, (std::vector<double>{35, 0, 40, 0, 45, 0, 0, 0, 0, 0, 0, 0}));
}

TEST_F(Layout, FlatShardsOfPieces) {
  OwningOpRef<ModuleOp> module = parse("8", R"(dist.sharding = #dist.sharding<[{}, {"tp"}]>,
    dist.global_shape = array<i64: 5, 9>, dist.flat_shape = array<i64: 5, 3>, dist.flat_axes = ["dp"])");
  FailureOr<dist::Layout> layout = dist::Layout::of(variable(*module));
  ASSERT_TRUE(succeeded(layout));
  EXPECT_EQ(layout->global, (Shape{5, 9}));
  EXPECT_EQ(layout->padded, (Shape{5, 9}));
  EXPECT_EQ(layout->local, (Shape{5, 3}));
  EXPECT_EQ(layout->flatAxes.front(), "dp");
  EXPECT_EQ(layout->shard, 8);
  EXPECT_TRUE(layout->isFlat());
  EXPECT_TRUE(layout->isPadded());

  DistributedInterpreter ranks(*module);
  HostTensor value(std::vector<int64_t>{5, 9});
  std::iota(value.data.begin(), value.data.end(), 1.0);
  ASSERT_TRUE(succeeded(ranks.setVariable("w", value)));
  FailureOr<HostTensor> back = ranks.getVariable("w");
  ASSERT_TRUE(succeeded(back));
  EXPECT_EQ(back->shape, value.shape);
  EXPECT_EQ(back->data, value.data);
  // Columns 3 to 5, which the second rank of tp has, in two runs of eight: 15 elements and a zero.
  EXPECT_EQ(ranks.getLocal(1, "w")->data, (std::vector<double>{4, 5, 6, 13, 14, 15, 22, 23}));
  EXPECT_EQ(ranks.getLocal(4, "w")->data, (std::vector<double>{24, 31, 32, 33, 40, 41, 42, 0}));
}

TEST_F(Layout, FlatShardsOverTwoAxesTheFirstOutermost) {
  OwningOpRef<ModuleOp> module = parse("2", R"(dist.flat_shape = array<i64: 3, 4>, dist.flat_axes = ["tp", "dp"])");
  DistributedInterpreter ranks(*module);
  HostTensor value(std::vector<int64_t>{3, 4});
  std::iota(value.data.begin(), value.data.end(), 1.0);
  ASSERT_TRUE(succeeded(ranks.setVariable("w", value)));
  EXPECT_EQ(ranks.getVariable("w")->data, value.data);
  EXPECT_EQ(ranks.getLocal(1, "w")->data, (std::vector<double>{5, 6})); // dp=0, tp=1
  EXPECT_EQ(ranks.getLocal(3, "w")->data, (std::vector<double>{3, 4})); // dp=1, tp=0
}

TEST_F(Layout, WhatIsNoPartOfATensorIsRefused) {
  using testing::HasSubstr;
  auto whyNot = [&](Operation *op) {
    std::string message;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) { message += diagnostic.str(); });
    EXPECT_TRUE(failed(dist::Layout::of(op)));
    return message;
  };
  EXPECT_THAT(problemOf("4x5", "dist.global_shape = array<i64: 20>"),
              HasSubstr("has 1 dimensions in its whole, but is of type 'tensor<4x5xf32>'"));
  EXPECT_THAT(problemOf("4611686018427387904", "dist.sharding = #dist.sharding<[{\"dp\"}]>"),
              HasSubstr("is larger than any tensor on all ranks together"));
  // Layout::of refuses modules that the verifier refuses too, for callers that did not run the verifier.
  OwningOpRef<ModuleOp> module = parse("8", "");
  EXPECT_THAT(whyNot(*module), HasSubstr("has no tensor type"));
  Operation *param = variable(*module);
  param->setAttr(dist::DistDialect::kFlatShapeAttr, DenseI64ArrayAttr::get(&context, {4, 4}));
  EXPECT_THAT(whyNot(param), HasSubstr("is flat, but has type 'tensor<8xf32>' or no dist.flat_axes"));
  param->setAttr(dist::DistDialect::kFlatAxesAttr, Builder(&context).getStrArrayAttr({"tp"}));
  EXPECT_THAT(whyNot(param), HasSubstr("has 8 elements, but a shard of 16 over 3 ranks has 6"));
}
