//===- SplitProgramTest.cpp - Programs of a pipeline that models do not make, and programs that are wrong
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Interp/PipelinedInterpreter.h"
#include "mlir/Parser/Parser.h"
#include "passes/Local/Passes.h"
#include "test/Unit/Stages/StagedModels.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::test;
using graph::HostTensor;

namespace {

/// One value goes to the last stage through one that does not use it, and its gradient comes back so. Another crosses
/// beside it. The first stage's activation depends on no other stage.
constexpr const char *kSkip = R"(
module attributes {stage.count = 3 : i64} {
  dist.mesh @mesh ["pp"] [3]
  dist.strategy @s {
    mesh @m ["pp"] [3]
    schedule "SCHEDULE"
    microbatches 6
  }
  graph.param @a : tensor<5xf32> init(#graph.normal<1.0>) key("a")
  graph.param @b : tensor<5xf32> init(#graph.normal<1.0>) key("b")
  graph.param @c : tensor<5xf32> init(#graph.normal<1.0>) key("c")
  graph.func loss @loss(%x: tensor<5xf32> {graph.name = "x"})
      -> (tensor<f32> {graph.name = "loss_sum"}, tensor<f32> {graph.name = "token_count"}) {
    %a = graph.read @a : tensor<5xf32>
    %0 = arith.mulf %x, %a : tensor<5xf32>
    %1 = graph.silu %0 : tensor<5xf32>
    %skip = stage.transfer %0 from 0 to 1 : tensor<5xf32>
    %far = stage.transfer %skip from 1 to 2 : tensor<5xf32>
    %2 = stage.transfer %1 from 0 to 1 : tensor<5xf32>
    %b = graph.read @b : tensor<5xf32>
    %3 = arith.mulf %2, %b : tensor<5xf32>
    %4 = graph.silu %3 : tensor<5xf32>
    %5 = stage.transfer %4 from 1 to 2 : tensor<5xf32>
    %c = graph.read @c : tensor<5xf32>
    %6 = arith.mulf %5, %c : tensor<5xf32>
    %7 = arith.mulf %6, %far : tensor<5xf32>
    %8 = arith.mulf %7, %x : tensor<5xf32>
    %9 = graph.reduce sum %8 dims [0] : (tensor<5xf32>) -> tensor<f32>
    %one = arith.constant dense<1.0> : tensor<f32>
    graph.return %9, %one : tensor<f32>, tensor<f32>
  }
})";

class SplitProgram : public StagedModels {
protected:
  OwningOpRef<ModuleOp> buildSkip(StringRef schedule, bool split) {
    std::string text = kSkip;
    text.replace(text.find("SCHEDULE"), 8, schedule.str());
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module);
    InsertOptimizerOptions optimizer;
    optimizer.clipNorm = 0.5;
    PassManager passes(&context);
    passes.addPass(createDifferentiate());
    passes.addPass(createInsertOptimizer(optimizer));
    passes.addPass(createInsertInit(InsertInitOptions{3}));
    passes.addPass(createCanonicalizerPass());
    passes.addPass(createCSEPass());
    if (split)
      passes.addPass(createSplitStages());
    EXPECT_TRUE(succeeded(passes.run(*module)));
    return module;
  }

  PipelinedInterpreter::Arguments inputs(uint32_t seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    PipelinedInterpreter::Arguments arguments;
    HostTensor &x = arguments.try_emplace("x", HostTensor({6, 5})).first->second;
    for (double &value : x.data)
      value = normal(random);
    return arguments;
  }

  /// States that backward passes read of forward passes, and that hold more than one microbatch at once.
  SmallVector<graph::StateOp> keptForBackward(ModuleOp split) {
    SmallVector<graph::StateOp> stashes;
    for (auto nested : split.getOps<ModuleOp>())
      for (auto function : nested.getOps<graph::FuncOp>())
        for (auto read : function.getBody().getOps<graph::ReadOp>()) {
          auto state = nested.lookupSymbol<graph::StateOp>(read.getVariable());
          if (function.getName().starts_with("backward") && state && state.getName().starts_with("stash.forward") &&
              *state.getSlots() > 1)
            stashes.push_back(state);
        }
    return stashes;
  }

  /// The error of running an entry.
  std::string messageOf(ModuleOp module, StringRef entry) {
    std::string message;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) { message += diagnostic.str(); });
    PipelinedInterpreter ranks(module, "pp");
    EXPECT_TRUE(failed(ranks.run(entry, {})));
    return message;
  }
};

} // namespace

TEST_F(SplitProgram, PassesOnWhatAStageDoesNotUse) {
  for (const char *schedule : {"gpipe", "1f1b", "zb_h1", "zb_h2"}) {
    SCOPED_TRACE(schedule);
    OwningOpRef<ModuleOp> whole = buildSkip(schedule, false), split = buildSkip(schedule, true);
    Interpreter one(*whole);
    PipelinedInterpreter many(*split, "pp");
    ASSERT_TRUE(succeeded(one.initializeVariables()) && succeeded(many.initialize()));
    for (uint32_t step = 0; step < 3; ++step) {
      PipelinedInterpreter::Arguments arguments = inputs(step);
      auto expected = one.run("train_step", {arguments.at("x")});
      auto actual = many.run("train_step", arguments);
      ASSERT_TRUE(succeeded(expected) && succeeded(actual));
      for (size_t result = 0; result < 3; ++result)
        compare((*expected)[result], (*actual)[result], 1e-13, "result " + std::to_string(result));
      for (auto param : whole->getOps<graph::ParamOp>())
        compare(*one.getVariable(param.getName()), *many.getVariable(param.getName()), 1e-13, param.getName());
    }
  }
}

// With one slot fewer, a later microbatch overwrites a value that is still needed.
TEST_F(SplitProgram, NeedsAllSlotsOfWhatIsKeptInOrder) {
  OwningOpRef<ModuleOp> whole = buildSkip("1f1b", false);
  Interpreter one(*whole);
  ASSERT_TRUE(succeeded(one.initializeVariables()));
  auto expected = one.run("train_step", {inputs(0).at("x")});
  ASSERT_TRUE(succeeded(expected));
  int64_t tried = 0;
  for (int64_t index = 0;; ++index) {
    OwningOpRef<ModuleOp> split = buildSkip("1f1b", true);
    SmallVector<graph::StateOp> stashes = keptForBackward(*split);
    if (index == static_cast<int64_t>(stashes.size()))
      break;
    graph::StateOp state = stashes[index];
    state.setSlotsAttr(IntegerAttr::get(IntegerType::get(&context, 64), *state.getSlots() - 1));
    PipelinedInterpreter many(*split, "pp");
    ASSERT_TRUE(succeeded(many.initialize()));
    auto actual = many.run("train_step", inputs(0));
    ASSERT_TRUE(succeeded(actual));
    EXPECT_NE((*expected)[1].data, (*actual)[1].data) << state.getName().str();
    ++tried;
  }
  EXPECT_GT(tried, 0);
}

TEST_F(SplitProgram, ASlotPerMicrobatchInFlight) {
  OwningOpRef<ModuleOp> split = buildSkip("1f1b", true);
  // 1F1B keeps P - r microbatches on rank r.
  for (auto [rank, nested] : llvm::enumerate(split->getOps<ModuleOp>())) {
    int64_t kept = 0;
    for (auto state : nested.getOps<graph::StateOp>())
      if (state.getName().starts_with("stash.forward."))
        kept = std::max<int64_t>(kept, *state.getSlots());
    EXPECT_EQ(kept, 3 - static_cast<int64_t>(rank));
  }
}

TEST_F(SplitProgram, OneRankAloneDoesNotRun) {
  OwningOpRef<ModuleOp> split = buildSkip("1f1b", true);
  ModuleOp nested = *split->getOps<ModuleOp>().begin();
  std::string message;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) { message += diagnostic.str(); });
  Interpreter alone(nested);
  ASSERT_TRUE(succeeded(alone.initializeVariables()));
  HostTensor x({5});
  auto types = alone.argumentTypes("train_step");
  ASSERT_TRUE(succeeded(types));
  EXPECT_TRUE(failed(alone.run("train_step", Interpreter::Tensors(types->size(), x))));
  EXPECT_NE(message.find("is a part of a pipeline, and runs on all of its ranks together"), std::string::npos)
      << message;
}

TEST_F(SplitProgram, DeadlocksAreNamed) {
  constexpr const char *kRank = R"(
    module @stageRANK {
      dist.mesh @mesh ["pp"] [2]
      graph.func @f() {
        %0 = stage.receive from OTHER channel "x" : tensor<2xf32>
        stage.send %0 to OTHER channel "y" : tensor<2xf32>
        graph.return
      }
      graph.entry @e [@f] repeat [1]
    })";
  std::string text = "module {";
  for (int rank : {0, 1}) {
    std::string one = kRank;
    one.replace(one.find("RANK"), 4, std::to_string(rank));
    for (size_t at; (at = one.find("OTHER")) != std::string::npos;)
      one.replace(at, 5, std::to_string(1 - rank));
    text += one;
  }
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text + "}", &context);
  ASSERT_TRUE(module);
  std::string message = messageOf(*module, "e");
  EXPECT_NE(message.find("all ranks wait for each other; rank 0 of the pipeline in @f of microbatch 0 to receive from "
                         "rank 1 on channel 'x'; rank 1"),
            std::string::npos)
      << message;
}

TEST_F(SplitProgram, WhatTwoRanksDoDifferentlyIsNamed) {
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(R"(
    module {
      module @stage0 {
        dist.mesh @mesh ["pp"] [2]
        graph.func @f() {
          %0 = arith.constant dense<1.0> : tensor<2xf32>
          stage.send %0, %0 to 1 channel "x" : tensor<2xf32>, tensor<2xf32>
          graph.return
        }
        graph.entry @e [@f] repeat [1]
      }
      module @stage1 {
        dist.mesh @mesh ["pp"] [2]
        graph.func @f() {
          %0 = stage.receive from 0 channel "x" : tensor<2xf32>
          graph.return
        }
        graph.entry @e [@f] repeat [1]
      }
    })",
                                                             &context);
  ASSERT_TRUE(module);
  EXPECT_NE(messageOf(*module, "e").find("takes 1 tensors but got 2"), std::string::npos);
}
