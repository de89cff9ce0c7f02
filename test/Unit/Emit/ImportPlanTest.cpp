//===- ImportPlanTest.cpp - Plan files that the plan dialect cannot express
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
#include "mlir/Parser/Parser.h"
#include "test/Unit/Check/rank_plan.h"
#include "test/Unit/Plan/plan_fixture.h"

using namespace mlir;
using namespace bowline;

namespace {

/// The module of the fixture whose kernel `kAdd` is launched by this grid; if there is none, `message` has the
/// diagnostics.
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

// A temporary, a part of it, and a part that each rank has for itself.
TEST_F(ImportPlan, KeepsViews) {
  bowline::testing::RankPlan made({{"dp", 2}, {"tp", 3}}, -1);
  made.Streams({"compute"});
  uint32_t tp = made.Communicator("tp", {1});
  uint32_t x = made.Buffer(0, "x", fbs::BufferKind::Input, 16);
  uint32_t y = made.Buffer(0, "y", fbs::BufferKind::Output, 16);
  uint32_t whole = made.Buffer(0, "whole", fbs::BufferKind::Temporary, 48);
  uint32_t own = made.View(0, "own", whole, 16, 0, {1}, 64);
  uint32_t second = made.View(0, "second", whole, 16, 64);
  made.Copy(0, 0, x, own);
  made.Collective(0, 0, fbs::CollectiveKind::AllGather, tp, own, whole, 16);
  made.Copy(0, 0, second, y);
  fbs::PlanT plan = made.Finish();
  OwningOpRef<ModuleOp> module = importPlan(&context, plan);
  ASSERT_TRUE(module);
  std::string text;
  llvm::raw_string_ostream(text) << *module;
  EXPECT_THAT(text, ::testing::HasSubstr("view %whole : !plan.buffer<tensor<48xf32>> over [\"tp\"] by 64"));
  OwningOpRef<ModuleOp> parsed = parseSourceString<ModuleOp>(text, &context);
  ASSERT_TRUE(parsed);
  auto again = emitPlan(*parsed);
  ASSERT_TRUE(succeeded(again));
  ASSERT_EQ((*again)->buffers.size(), plan.buffers.size());
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const fbs::ViewT *given = plan.buffers[i]->view.get(), *written = (*again)->buffers[i]->view.get();
    ASSERT_EQ(given == nullptr, written == nullptr) << i;
    if (given == nullptr) continue;
    EXPECT_EQ(given->of, written->of);
    EXPECT_EQ(given->axes, written->axes);
    EXPECT_EQ(given->stride, written->stride);
  }
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
