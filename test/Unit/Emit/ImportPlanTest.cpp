//===- ImportPlanTest.cpp - What the plan dialect cannot say of a file
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include <functional>

#include "compiler/Emit/EmitPlan.h"
#include "compiler/Support/Registration.h"
#include "dialects/Plan/PlanOps.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mlir/IR/MLIRContext.h"
#include "test/Unit/Plan/plan_fixture.h"

using namespace mlir;
using namespace bowline;

namespace {

/// The module of the fixture whose kernel `kAdd` is launched by this grid; what was said in `message` where there is
/// none.
OwningOpRef<ModuleOp> import(MLIRContext& context, const std::function<void(fbs::GridT&)>& change,
                             std::string& message) {
  fbs::PlanT plan = bowline::testing::MakePlan();
  fbs::KernelT& add = *plan.kernels[bowline::testing::kAdd];
  fbs::GridT grid;
  grid.blocks = {3};
  grid.threads = {64};
  change(grid);
  add.geometry.Set(std::move(grid));
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic& diagnostic) {
    message += diagnostic.str();
    return success();
  });
  return importPlan(&context, plan);
}

class ImportPlan : public ::testing::Test {
 protected:
  ImportPlan() : context(registry(), MLIRContext::Threading::DISABLED) { context.loadAllAvailableDialects(); }

  static DialectRegistry registry() {
    DialectRegistry registry;
    registerAllDialects(registry);
    return registry;
  }

  MLIRContext context;
  std::string message;
};

TEST_F(ImportPlan, KeepsGrids) {
  OwningOpRef<ModuleOp> module = import(context, [](fbs::GridT&) {}, message);
  ASSERT_TRUE(module) << message;
  int grids = 0;
  module->walk([&](plan::KernelOp kernel) {
    if (auto grid = kernel.getGrid()) {
      ++grids;
      EXPECT_EQ(grid->vec(), (std::vector<int64_t>{3, 64}));
      EXPECT_FALSE(kernel.getExtent());
    }
  });
  EXPECT_EQ(grids, 1);
  auto again = emitPlan(*module);
  ASSERT_TRUE(succeeded(again));
  int written = 0;
  for (const auto& kernel : (*again)->kernels)
    if (const fbs::GridT* grid = kernel->geometry.AsGrid()) {
      ++written;
      EXPECT_EQ(grid->blocks, (std::vector<uint32_t>{3}));
      EXPECT_EQ(grid->threads, (std::vector<uint32_t>{64}));
    }
  EXPECT_EQ(written, 1);
}

TEST_F(ImportPlan, RefusesGridsThatHaveNoText) {
  for (const std::function<void(fbs::GridT&)>& change : std::initializer_list<std::function<void(fbs::GridT&)>>{
           [](fbs::GridT& grid) { grid.blocks.clear(); }, [](fbs::GridT& grid) { grid.threads.clear(); },
           [](fbs::GridT& grid) { grid.blocks = {3, 2}; }, [](fbs::GridT& grid) { grid.threads = {8, 8, 2}; },
           [](fbs::GridT& grid) { grid.shared_bytes = 64; }}) {
    message.clear();
    EXPECT_FALSE(import(context, change, message));
    EXPECT_THAT(message, ::testing::HasSubstr("'fixture_add' is launched by a grid of several dimensions"));
  }
}

// They have no names there, so that only ports, and checks of data, may have them.
TEST_F(ImportPlan, RefusesOtherUsesOfSecondBuffersAndOfFaults) {
  using bowline::testing::MakePlanWithTwoRuns;
  struct Case {
    std::function<void(fbs::PlanT&)> change;
    const char* says;
  };
  const Case cases[] = {
      {[](fbs::PlanT& plan) {
         *bowline::testing::CopyAt(plan, 1, 2, 0).destination = fbs::Operand(bowline::testing::kSecondResult, 0);
       },
       "buffer 11 'result.second'"},
      {[](fbs::PlanT& plan) { plan.entries[1]->outputs[0]->buffer = bowline::testing::kSecondTokens; },
       "buffer 10 'tokens.second'"},
      {[](fbs::PlanT& plan) { plan.buffers[bowline::testing::kSum]->kind = fbs::BufferKind::Fault; }, "buffer 8 'sum'"},
      {[](fbs::PlanT& plan) { plan.buffers[plan.states[0]->buffer]->kind = fbs::BufferKind::Fault; }, "buffer 0"},
  };
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic& diagnostic) {
    message += diagnostic.str();
    return success();
  });
  for (const Case& wrong : cases) {
    fbs::PlanT plan = MakePlanWithTwoRuns();
    wrong.change(plan);
    message.clear();
    EXPECT_FALSE(importPlan(&context, plan)) << wrong.says;
    EXPECT_THAT(message, ::testing::HasSubstr(wrong.says));
    EXPECT_THAT(message, ::testing::HasSubstr("which the plan dialect cannot say"));
  }
  message.clear();
  EXPECT_TRUE(importPlan(&context, MakePlanWithTwoRuns())) << message;
}

}  // namespace
