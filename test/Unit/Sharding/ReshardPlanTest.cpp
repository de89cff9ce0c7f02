//===- ReshardPlanTest.cpp - The collectives that a reshard is made of
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Local/Tensors/ReshardPlan.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace bowline;

namespace {

class ReshardPlan : public testing::Test {
protected:
  ReshardPlan() { context.loadDialect<dist::DistDialect>(); }

  dist::ShardingAttr parse(StringRef text) {
    return cast<dist::ShardingAttr>(parseAttribute(("#dist.sharding<" + text + ">").str(), &context));
  }

  /// "all_reduce(a,b) gather[0](c)".
  std::string plan(StringRef from, StringRef to) {
    static constexpr const char *kNames[] = {"all_reduce", "reduce_scatter", "all_gather", "all_to_all", "slice"};
    std::string text;
    llvm::raw_string_ostream os(text);
    for (const ReshardStep &step : planReshard(parse(from), parse(to))) {
      os << (text.empty() ? "" : " ") << kNames[static_cast<int>(step.kind)];
      if (step.kind == ReshardStep::Kind::AllToAll)
        os << '[' << step.from << "->" << step.dim << ']';
      else if (step.kind != ReshardStep::Kind::AllReduce)
        os << '[' << step.dim << ']';
      os << '(';
      llvm::interleaveComma(step.axes, os, [&](StringAttr axis) { os << axis.getValue(); });
      os << ')';
    }
    return text;
  }

  MLIRContext context;
};

} // namespace

TEST_F(ReshardPlan, NothingWhereNothingChanges) {
  EXPECT_EQ(plan(R"([{"a"}, {}])", R"([{"a"}, {}])"), "");
  EXPECT_EQ(plan(R"([{}], unreduced = {"a"})", R"([{}], unreduced = {"a"})"), "");
}

TEST_F(ReshardPlan, OneCollectiveWhereOneIsEnough) {
  EXPECT_EQ(plan(R"([{"a"}, {}])", R"([{}, {}])"), "all_gather[0](a)");
  EXPECT_EQ(plan(R"([{"a", "b"}, {}])", R"([{}, {}])"), "all_gather[0](a, b)");
  EXPECT_EQ(plan(R"([{"a", "b"}, {}])", R"([{"a"}, {}])"), "all_gather[0](b)");
  EXPECT_EQ(plan(R"([{}, {}])", R"([{"a"}, {"b"}])"), "slice[0](a) slice[1](b)");
  EXPECT_EQ(plan(R"([{}, {}], unreduced = {"a", "b"})", R"([{}, {}])"), "all_reduce(a, b)");
  EXPECT_EQ(plan(R"([{}, {}], unreduced = {"a"})", R"([{}, {"a"}])"), "reduce_scatter[1](a)");
  EXPECT_EQ(plan(R"([{"a"}, {}])", R"([{}, {"a"}])"), "all_to_all[0->1](a)");
}

TEST_F(ReshardPlan, AxesOfOneDimensionAreOneGroup) {
  EXPECT_EQ(plan(R"([{}, {}], unreduced = {"a", "b"})", R"([{}, {"a", "b"}])"), "reduce_scatter[1](a, b)");
  EXPECT_EQ(plan(R"([{}, {}], unreduced = {"b"})", R"([{"a", "b"}, {}])"), "slice[0](a) reduce_scatter[0](b)");
  EXPECT_EQ(plan(R"([{}, {}])", R"([{"a", "b"}, {"c"}])"), "slice[0](a, b) slice[1](c)");
}

TEST_F(ReshardPlan, WhatMakesPiecesSmallerComesFirst) {
  EXPECT_EQ(plan(R"([{}, {"b"}], unreduced = {"a"})", R"([{"a"}, {}])"), "reduce_scatter[0](a) all_gather[1](b)");
  EXPECT_EQ(plan(R"([{}, {}], unreduced = {"a"})", R"([{"b"}, {}])"), "slice[0](b) all_reduce(a)");
}

TEST_F(ReshardPlan, TheOrderWithinADimensionIsKept) {
  // b is outside of a: a must be cut off before b can be put there.
  EXPECT_EQ(plan(R"([{"a"}])", R"([{"b", "a"}])"), "all_gather[0](a) slice[0](b, a)");
  EXPECT_EQ(plan(R"([{"a", "b"}])", R"([{"b"}])"), "all_gather[0](a, b) slice[0](b)");
  EXPECT_EQ(plan(R"([{"a", "b"}, {}])", R"([{}, {"a"}])"), "all_gather[0](a, b) slice[1](a)");
}
