//===- PlacementTest.cpp - Ranks compute parts of the whole program
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "test/Unit/Placement/DividedProgram.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::test;

namespace {

class Placements : public DividedProgram, public testing::WithParamInterface<SmallCase> {};

TEST_P(Placements, OfAllValuesAreFound) {
  divide(build(GetParam()), options(GetParam()));
  ASSERT_TRUE(divided && record->whole);
  EXPECT_EQ(problemOf(*divided), "");
  EXPECT_GT(summary.values, 20);
  if (!GetParam().generates) EXPECT_GT(summary.written, 30);
  EXPECT_GE(summary.results, 1);
}

INSTANTIATE_TEST_SUITE_P(, Placements, testing::ValuesIn(kSmallCases),
                         [](const auto& info) { return info.param.name; });

}  // namespace
