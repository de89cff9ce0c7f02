//===- CostTest.cpp - What operations say that they cost
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/GraphOps.h"
#include "test/Unit/Dialects/FactorRuleCheck.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::graph;
using namespace bowline::test;

TEST(Costs, GatherMovesTheRowsThatItGives) {
  Random random;
  OpHarness gather(
      {{random.reals({1000, 3})}, {random.integers({2, 5}, 0, 999), ElementKind::I32}},
      [](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * { return GatherOp::create(b, x[0], x[1]); });
  EXPECT_EQ(cast<CostModel>(gather.operation()).bytes(), 2 * (10 * 3 * 8) + 10 * 4);
}
