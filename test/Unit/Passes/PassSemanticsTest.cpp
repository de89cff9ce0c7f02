//===- PassSemanticsTest.cpp - Passes on the graph keep what programs compute
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Random programs, interpreted in f64 before and after a random choice of passes with random options. No code is
// generated: a pass changed every value that differs by more than the order of sums.
//
//===----------------------------------------------------------------------===//

#include "compiler/Interp/Interpreter.h"
#include "dialects/Graph/GraphOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Fusion/Epilogues/EpilogueFusion.h"
#include "passes/Fusion/Passes.h"
#include "test/Unit/Passes/RandomProgram.h"
#include "gtest/gtest.h"

#include <cmath>

using namespace mlir;
using namespace bowline;
using namespace bowline::test;

namespace {

constexpr int kPrograms = 300;

/// f64 in another order, on values of the order of one.
constexpr double kTolerance = 1e-9;

/// How often each pass had something to do.
struct Counts {
  int tiledLosses = 0, splitSums = 0, groups = 0, epilogues = 0;
};

void runPasses(Random &random, ModuleOp module, Counts &counts) {
  auto count = [&](auto matches) {
    int found = 0;
    module.walk([&](Operation *op) { found += matches(op); });
    return found;
  };
  auto losses = [](Operation *op) { return isa<graph::SoftmaxCrossEntropyOp>(op); };
  auto sums = [](Operation *op) { return isa<graph::ReduceOp>(op); };
  int lossesBefore = count(losses), sumsBefore = count(sums);
  PassManager manager(&context());
  if (random.flip()) {
    TileLossOptions options;
    options.tileBytes = random.integer(0, 64);
    options.minPositions = random.integer(1, 3);
    manager.addPass(createTileLoss(options));
  }
  if (random.flip())
    manager.addPass(createRepeatActivations());
  if (random.flip()) {
    SplitColumnReductionsOptions options;
    options.maxBlocks = random.integer(2, 5);
    options.minRows = random.integer(1, 3);
    manager.addPass(createSplitColumnReductions(options));
  }
  ASSERT_TRUE(succeeded(manager.run(module)));
  counts.tiledLosses += count(losses) - lossesBefore;
  counts.splitSums += count(sums) - sumsBefore;

  PassManager grouping(&context());
  grouping.addPass(createGroupFusions(GroupFusionsOptions{random.integer(0, 3) > 0}));
  if (random.integer(0, 3) > 0)
    grouping.addPass(createFuseEpilogues());
  ASSERT_TRUE(succeeded(grouping.run(module)));
  module.walk([&](graph::FusionOp fusion) {
    ++counts.groups;
    counts.epilogues += fusion.getContraction() != nullptr;
  });
}

void expectNearby(const HostTensor &got, const HostTensor &want) {
  ASSERT_EQ(got.shape, want.shape);
  for (size_t i = 0; i < want.data.size(); ++i)
    ASSERT_NEAR(got.data[i], want.data[i], kTolerance * std::max(1.0, std::fabs(want.data[i]))) << "[" << i << "]";
}

void check(Random &random, const std::string &text, Counts &counts) {
  OwningOpRef<ModuleOp> before = parseSourceString<ModuleOp>(text, ParserConfig(&context()));
  ASSERT_TRUE(before);
  OwningOpRef<ModuleOp> after = before->clone();
  runPasses(random, *after, counts);
  if (testing::Test::HasFatalFailure())
    return;
  Interpreter want(*before), got(*after);
  for (Interpreter *interpreter : {&want, &got})
    ASSERT_TRUE(succeeded(interpreter->initializeVariables()));
  std::vector<HostTensor> arguments;
  auto types = want.argumentTypes("run");
  ASSERT_TRUE(succeeded(types));
  for (RankedTensorType type : *types)
    arguments.push_back(random.reals(type.getShape().vec(), -1, 1));
  auto expected = want.run("run", arguments), actual = got.run("run", arguments);
  ASSERT_TRUE(succeeded(expected) && succeeded(actual));
  ASSERT_EQ(actual->size(), expected->size());
  for (auto [index, value] : llvm::enumerate(*expected)) {
    SCOPED_TRACE("result " + std::to_string(index));
    expectNearby((*actual)[index], value);
  }
  before->walk([&](Operation *op) {
    if (!isa<graph::ParamOp, graph::StateOp>(op))
      return;
    StringRef name = SymbolTable::getSymbolName(op).getValue();
    SCOPED_TRACE(name.str());
    expectNearby(*got.getVariable(name), *want.getVariable(name));
  });
}

} // namespace

TEST(PassSemantics, RandomPrograms) {
  Random random;
  SCOPED_TRACE(random.trace());
  Counts counts;
  for (int i = 0; i < kPrograms; ++i) {
    std::string text = randomProgram(random);
    check(random, text, counts);
    ASSERT_FALSE(HasFailure()) << "program " << i << ":\n" << text;
  }
  EXPECT_GT(counts.tiledLosses, 0);
  EXPECT_GT(counts.splitSums, 0);
  EXPECT_GT(counts.groups, 0);
  EXPECT_GT(counts.epilogues, 0);
}
