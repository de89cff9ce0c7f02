//===- FusionGroupsTest.cpp - Which operations are computed together
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Fusion/Groups/FusionGroups.h"
#include "dialects/Graph/GraphOps.h"
#include "mlir/Parser/Parser.h"
#include "test/Unit/Passes/RandomProgram.h"
#include "llvm/ADT/StringExtras.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::test;
using testing::ElementsAre;

namespace {

OwningOpRef<ModuleOp> parse(const std::string &text) {
  return parseSourceString<ModuleOp>(text, ParserConfig(&context()));
}

/// The groups of `@f` as "tanh addf", without dialects.
std::vector<std::string> groupsOf(const std::string &text, bool merge = true) {
  OwningOpRef<ModuleOp> module = parse(text);
  if (!module)
    return {"does not parse"};
  FusionGroups groups((*module->getOps<graph::FuncOp>().begin()).getBody().front(), merge);
  std::vector<std::string> names;
  for (const FusionGroups::Group *group : groups.groups())
    names.push_back(llvm::join(
        llvm::map_range(group->operations, [](Operation *op) { return op->getName().stripDialect(); }), " "));
  return names;
}

constexpr const char *kChain = R"(
graph.func @f(%x: tensor<4x3xf32>, %b: tensor<3xf32>) -> tensor<4x3xf32> {
  %wide = graph.broadcast %b dims [1] : (tensor<3xf32>) -> tensor<4x3xf32>
  %half = arith.constant dense<0.5> : tensor<4x3xf32>
  %0 = arith.addf %x, %wide : tensor<4x3xf32>
  %1 = arith.mulf %0, %half : tensor<4x3xf32>
  %2 = math.tanh %1 : tensor<4x3xf32>
  graph.return %2 : tensor<4x3xf32>
})";

} // namespace

TEST(FusionGroups, ElementwiseOperationsJoin) { EXPECT_THAT(groupsOf(kChain), ElementsAre("addf mulf tanh")); }

TEST(FusionGroups, NothingJoinsWithoutMerging) {
  EXPECT_THAT(groupsOf(kChain, /*merge=*/false), ElementsAre("addf", "mulf", "tanh"));
}

TEST(FusionGroups, UserInBetweenKeepsItsOperandApart) {
  EXPECT_THAT(groupsOf(R"(
graph.func @f(%x: tensor<3x3xf32>) -> tensor<3x3xf32> {
  %0 = math.tanh %x : tensor<3x3xf32>
  %1 = graph.dot_general %0, %x contract [0] x [0] : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %2 = arith.addf %0, %x : tensor<3x3xf32>
  graph.return %2 : tensor<3x3xf32>
})"),
              ElementsAre("tanh", "addf"));
}

TEST(FusionGroups, UserBehindDoesNotMatter) {
  EXPECT_THAT(groupsOf(R"(
graph.func @f(%x: tensor<3x3xf32>) -> tensor<3x3xf32> {
  %0 = math.tanh %x : tensor<3x3xf32>
  %1 = arith.addf %0, %x : tensor<3x3xf32>
  %2 = graph.dot_general %0, %x contract [0] x [0] : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  graph.return %1 : tensor<3x3xf32>
})"),
              ElementsAre("tanh addf"));
}

TEST(FusionGroups, UserInBetweenThroughBroadcast) {
  EXPECT_THAT(groupsOf(R"(
graph.state @s saved : tensor<4x3xf32> init(#graph.fill<0.0>)
graph.func @f(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = math.tanh %x : tensor<3xf32>
  %wide = graph.broadcast %0 dims [1] : (tensor<3xf32>) -> tensor<4x3xf32>
  graph.write @s, %wide : tensor<4x3xf32>
  %1 = math.cos %0 : tensor<3xf32>
  graph.return %1 : tensor<3xf32>
})"),
              ElementsAre("tanh", "cos"));
}

/// The contraction reads the cosine before the sum is computed: the other operand joins alone.
TEST(FusionGroups, OneOfTwoProducersJoins) {
  EXPECT_THAT(groupsOf(R"(
graph.func @f(%x: tensor<3x3xf32>, %y: tensor<3x3xf32>) -> tensor<3x3xf32> {
  %0 = math.tanh %x : tensor<3x3xf32>
  %1 = math.cos %y : tensor<3x3xf32>
  %2 = graph.dot_general %1, %x contract [0] x [0] : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %3 = arith.addf %0, %1 : tensor<3x3xf32>
  graph.return %3 : tensor<3x3xf32>
})"),
              ElementsAre("cos", "tanh addf"));
}

TEST(FusionGroups, RowReductionAndItsUsersJoin) {
  EXPECT_THAT(groupsOf(R"(
graph.func @f(%x: tensor<4x3xf32>) -> tensor<4x3xf32> {
  %0 = arith.mulf %x, %x : tensor<4x3xf32>
  %1 = graph.reduce sum %0 dims [1] : (tensor<4x3xf32>) -> tensor<4xf32>
  %2 = math.rsqrt %1 : tensor<4xf32>
  %wide = graph.broadcast %2 dims [0] : (tensor<4xf32>) -> tensor<4x3xf32>
  %3 = arith.mulf %x, %wide : tensor<4x3xf32>
  graph.return %3 : tensor<4x3xf32>
})"),
              ElementsAre("mulf reduce rsqrt mulf"));
}

TEST(FusionGroups, ReductionOverRowsStaysApart) {
  EXPECT_THAT(groupsOf(R"(
graph.func @f(%x: tensor<4x3xf32>) -> tensor<3xf32> {
  %0 = math.tanh %x : tensor<4x3xf32>
  %1 = graph.reduce sum %0 dims [0] : (tensor<4x3xf32>) -> tensor<3xf32>
  %2 = math.cos %1 : tensor<3xf32>
  graph.return %2 : tensor<3xf32>
})"),
              ElementsAre("tanh", "reduce", "cos"));
}

/// Rows are summed in parallel, and then their sums.
TEST(FusionGroups, SumOfSumsOfRowsStaysApart) {
  EXPECT_THAT(groupsOf(R"(
graph.func @f(%x: tensor<4x3xf32>) -> tensor<f32> {
  %0 = arith.mulf %x, %x : tensor<4x3xf32>
  %1 = graph.reduce sum %0 dims [1] : (tensor<4x3xf32>) -> tensor<4xf32>
  %2 = graph.reduce sum %1 dims [0] : (tensor<4xf32>) -> tensor<f32>
  graph.return %2 : tensor<f32>
})"),
              ElementsAre("mulf reduce", "reduce"));
}

/// Nor do rows join a group that sums values of theirs.
TEST(FusionGroups, RowsDoNotJoinASumOfTheirValues) {
  EXPECT_THAT(groupsOf(R"(
graph.func @f(%x: tensor<4x3xf32>, %r: tensor<4xf32>) -> (tensor<4x3xf32>, tensor<f32>) {
  %0 = math.tanh %r : tensor<4xf32>
  %1 = graph.reduce sum %0 dims [0] : (tensor<4xf32>) -> tensor<f32>
  %wide = graph.broadcast %0 dims [0] : (tensor<4xf32>) -> tensor<4x3xf32>
  %2 = arith.mulf %x, %wide : tensor<4x3xf32>
  graph.return %2, %1 : tensor<4x3xf32>, tensor<f32>
})"),
              ElementsAre("tanh reduce", "mulf"));
}

/// Zeros around the operand of a sum are not stored; those around the operand of a contraction are.
TEST(FusionGroups, PadsAreRepeatedForElementwiseUsers) {
  EXPECT_THAT(groupsOf(R"(
graph.func @f(%x: tensor<3x2xf32>, %y: tensor<3x1xf32>, %z: tensor<2x3xf32>) -> tensor<3x3xf32> {
  %0 = graph.pad %x low [0, 0] high [0, 1] : (tensor<3x2xf32>) -> tensor<3x3xf32>
  %1 = graph.pad %y low [0, 2] high [0, 0] : (tensor<3x1xf32>) -> tensor<3x3xf32>
  %2 = arith.addf %0, %1 : tensor<3x3xf32>
  %3 = graph.pad %z low [0, 0] high [1, 0] : (tensor<2x3xf32>) -> tensor<3x3xf32>
  %4 = graph.dot_general %2, %3 contract [1] x [0] : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  graph.return %4 : tensor<3x3xf32>
})"),
              ElementsAre("addf", "pad"));
}

TEST(FusionGroups, ScalarDoesNotJoinTensor) {
  EXPECT_THAT(groupsOf(R"(
graph.func @f(%x: tensor<3xf32>, %s: tensor<f32>) -> tensor<3xf32> {
  %0 = math.tanh %s : tensor<f32>
  %1 = math.cos %0 : tensor<f32>
  %wide = graph.broadcast %1 dims [] : (tensor<f32>) -> tensor<3xf32>
  %2 = arith.addf %x, %wide : tensor<3xf32>
  graph.return %2 : tensor<3xf32>
})"),
              ElementsAre("tanh cos", "addf"));
}

TEST(FusionGroups, MovedElementsStayApart) {
  EXPECT_THAT(groupsOf(R"(
graph.func @f(%x: tensor<3x3xf32>) -> tensor<3x3xf32> {
  %0 = math.tanh %x : tensor<3x3xf32>
  %1 = graph.transpose %0 perm [1, 0] : (tensor<3x3xf32>) -> tensor<3x3xf32>
  %2 = math.cos %1 : tensor<3x3xf32>
  graph.return %2 : tensor<3x3xf32>
})"),
              ElementsAre("tanh", "transpose", "cos"));
}

TEST(FusionGroups, ReadersOfOneValueJoin) {
  constexpr const char *kText = R"(
graph.func @f(%x: tensor<4x3xf32>, %y: tensor<4x3xf32>) -> (tensor<4x3xf32>, tensor<4xf32>) {
  %0 = math.tanh %x : tensor<4x3xf32>
  %1 = graph.reduce max %x dims [1] : (tensor<4x3xf32>) -> tensor<4xf32>
  %2 = math.cos %y : tensor<4x3xf32>
  graph.return %0, %1 : tensor<4x3xf32>, tensor<4xf32>
})";
  EXPECT_THAT(groupsOf(kText), ElementsAre("tanh reduce", "cos"));
  EXPECT_THAT(groupsOf(kText, /*merge=*/false), ElementsAre("tanh", "reduce", "cos"));
}

/// The latest of several groups that read the same.
TEST(FusionGroups, ReaderJoinsTheLatestGroup) {
  EXPECT_THAT(groupsOf(R"(
graph.func @f(%x: tensor<3x3xf32>) -> (tensor<3x3xf32>, tensor<3x3xf32>, tensor<3x3xf32>) {
  %0 = math.tanh %x : tensor<3x3xf32>
  %1 = graph.dot_general %0, %x contract [0] x [0] : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %2 = arith.mulf %x, %1 : tensor<3x3xf32>
  %3 = math.cos %x : tensor<3x3xf32>
  graph.return %0, %2, %3 : tensor<3x3xf32>, tensor<3x3xf32>, tensor<3x3xf32>
})"),
              ElementsAre("tanh", "mulf cos"));
}

/// The second reader needs a contraction of the first reader's result.
TEST(FusionGroups, ReaderBehindAContractionStaysApart) {
  EXPECT_THAT(groupsOf(R"(
graph.func @f(%x: tensor<3x3xf32>) -> tensor<3x3xf32> {
  %0 = math.tanh %x : tensor<3x3xf32>
  %1 = graph.dot_general %0, %0 contract [0] x [0] : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %2 = arith.mulf %x, %1 : tensor<3x3xf32>
  graph.return %2 : tensor<3x3xf32>
})"),
              ElementsAre("tanh", "mulf"));
}

/// Values per row, and repeated values, are little: reading them twice costs nothing.
TEST(FusionGroups, ReadersOfRepeatedValuesStayApart) {
  EXPECT_THAT(groupsOf(R"(
graph.func @f(%x: tensor<4x3xf32>, %y: tensor<4x3xf32>, %b: tensor<3xf32>) -> (tensor<4x3xf32>, tensor<4x3xf32>) {
  %wide = graph.broadcast %b dims [1] : (tensor<3xf32>) -> tensor<4x3xf32>
  %0 = arith.addf %x, %wide : tensor<4x3xf32>
  %1 = arith.mulf %y, %wide : tensor<4x3xf32>
  graph.return %0, %1 : tensor<4x3xf32>, tensor<4x3xf32>
})"),
              ElementsAre("addf", "mulf"));
}

/// The value that both groups read has one element per row of the first group: little beside its rows.
TEST(FusionGroups, ReadersOfValuesPerRowStayApart) {
  EXPECT_THAT(groupsOf(R"(
graph.func @f(%x: tensor<4x3xf32>, %r: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = graph.reduce max %x dims [1] : (tensor<4x3xf32>) -> tensor<4xf32>
  %1 = arith.addf %0, %r : tensor<4xf32>
  %2 = math.cos %r : tensor<4xf32>
  graph.return %1, %2 : tensor<4xf32>, tensor<4xf32>
})"),
              ElementsAre("reduce addf", "cos"));
}

/// A transpose reads the same value in another order.
TEST(FusionGroups, ReadersInAnotherOrderStayApart) {
  EXPECT_THAT(groupsOf(R"(
graph.func @f(%x: tensor<3x3xf32>) -> (tensor<3x3xf32>, tensor<3x3xf32>, tensor<3xf32>) {
  %0 = graph.transpose %x perm [1, 0] : (tensor<3x3xf32>) -> tensor<3x3xf32>
  %1 = math.tanh %x : tensor<3x3xf32>
  %2 = graph.reduce sum %x dims [0] : (tensor<3x3xf32>) -> tensor<3xf32>
  graph.return %0, %1, %2 : tensor<3x3xf32>, tensor<3x3xf32>, tensor<3xf32>
})"),
              ElementsAre("transpose", "tanh", "reduce"));
}

TEST(FusionGroups, LossAndItsGradientJoin) {
  EXPECT_THAT(groupsOf(R"(
graph.func @f(%y: tensor<4x3xf32>, %l: tensor<4xi32>, %s: tensor<4xf32>) -> (tensor<4xf32>, tensor<4x3xf32>) {
  %loss, %lse = graph.softmax_cross_entropy %y, %l : (tensor<4x3xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>)
  %0 = arith.mulf %loss, %s : tensor<4xf32>
  %1 = graph.softmax_cross_entropy_grad %y, %l, %lse, %s : (tensor<4x3xf32>, tensor<4xi32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4x3xf32>
  graph.return %0, %1 : tensor<4xf32>, tensor<4x3xf32>
})"),
              ElementsAre("softmax_cross_entropy mulf softmax_cross_entropy_grad"));
}

TEST(FusionGroups, SumsOfBlocksOfRowsJoin) {
  EXPECT_THAT(groupsOf(R"(
graph.func @f(%x: tensor<2x3x5xf32>) -> (tensor<2x3x5xf32>, tensor<5xf32>) {
  %0 = math.tanh %x : tensor<2x3x5xf32>
  %blocks = graph.reshape %0 : (tensor<2x3x5xf32>) -> tensor<3x2x5xf32>
  %1 = graph.reduce sum %blocks dims [1] : (tensor<3x2x5xf32>) -> tensor<3x5xf32>
  %2 = graph.reduce sum %1 dims [0] : (tensor<3x5xf32>) -> tensor<5xf32>
  graph.return %0, %2 : tensor<2x3x5xf32>, tensor<5xf32>
})"),
              ElementsAre("tanh reduce", "reduce"));
}

/// Maxima of blocks, and sums where rows were cut, are reductions like any other.
TEST(FusionGroups, OtherReductionsOfThreeDimensionsStayApart) {
  EXPECT_THAT(groupsOf(R"(
graph.func @f(%x: tensor<6x4xf32>) -> (tensor<2x4xf32>, tensor<4x2xf32>) {
  %0 = math.tanh %x : tensor<6x4xf32>
  %blocks = graph.reshape %0 : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
  %1 = graph.reduce max %blocks dims [1] : (tensor<2x3x4xf32>) -> tensor<2x4xf32>
  %cut = graph.reshape %0 : (tensor<6x4xf32>) -> tensor<4x3x2xf32>
  %2 = graph.reduce sum %cut dims [1] : (tensor<4x3x2xf32>) -> tensor<4x2xf32>
  graph.return %1, %2 : tensor<2x4xf32>, tensor<4x2xf32>
})"),
              ElementsAre("tanh", "reduce", "reduce"));
}

TEST(FusionGroups, LargeGroupsEnd) {
  constexpr int kOperations = 101;
  std::string text = "graph.func @f(%v0: tensor<3xf32>) -> tensor<3xf32> {\n";
  for (int i = 0; i < kOperations; ++i)
    text += "  %v" + std::to_string(i + 1) + " = math.tanh %v" + std::to_string(i) + " : tensor<3xf32>\n";
  text += "  graph.return %v" + std::to_string(kOperations) + " : tensor<3xf32>\n}\n";
  std::vector<size_t> sizes;
  for (const std::string &group : groupsOf(text))
    sizes.push_back(llvm::count(group, ' ') + 1);
  EXPECT_THAT(sizes, ElementsAre(48, 48, 5));
}

/// Whether anything outside of `group` reads `member`, itself or through repeated operations, before the group is
/// computed.
static bool isReadEarly(Operation *member, const FusionGroups::Group &group) {
  return llvm::any_of(member->getUsers(), [&](Operation *user) {
    if (FusionGroups::isRepeated(user))
      return isReadEarly(user, group);
    return !llvm::is_contained(group.operations, user) && user->isBeforeInBlock(group.operations.back());
  });
}

TEST(FusionGroups, RandomProgramsCanBeComputedAtTheLastMembers) {
  Random random;
  SCOPED_TRACE(random.trace());
  int merged = 0;
  for (int i = 0; i < 60; ++i) {
    std::string text = randomProgram(random);
    OwningOpRef<ModuleOp> module = parse(text);
    ASSERT_TRUE(module);
    for (auto function : module->getOps<graph::FuncOp>()) {
      Block &block = function.getBody().front();
      DenseSet<Operation *> grouped;
      Operation *previous = nullptr;
      FusionGroups groups(block, /*merge=*/true);
      for (const FusionGroups::Group *group : groups.groups()) {
        merged += group->operations.size() > 1;
        EXPECT_TRUE(!previous || previous->isBeforeInBlock(group->operations.back()));
        previous = group->operations.back();
        for (Operation *member : group->operations) {
          EXPECT_TRUE(grouped.insert(member).second) << "in two groups";
          EXPECT_TRUE(FusionGroups::isFusible(member) && !FusionGroups::isRepeated(member));
          EXPECT_FALSE(isReadEarly(member, *group));
        }
      }
      for (Operation &op : block)
        if (FusionGroups::isFusible(&op) && !FusionGroups::isRepeated(&op))
          EXPECT_TRUE(grouped.contains(&op)) << "in no group";
    }
    ASSERT_FALSE(HasFailure()) << text;
  }
  EXPECT_GT(merged, 0);
}
