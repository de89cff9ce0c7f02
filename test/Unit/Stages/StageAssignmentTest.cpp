//===- StageAssignmentTest.cpp - Which layers are where, and what crosses
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Training/Stages/LayerAnalysis.h"
#include "targets/target.h"
#include "test/Unit/Stages/StagedModels.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::test;
using testing::ElementsAre;
using testing::Pair;

namespace {

class StageAssignmentOfModels : public StagedModels {
protected:
  OwningOpRef<ModuleOp> buildStaged(const StagedModel &model, const char *mesh, const char *stages = "balanced") {
    StrategyFlags flags;
    flags.mesh = mesh;
    flags.stages = stages;
    return build(model, flags);
  }

  /// The stages of the layers' parameters, which are one for each layer.
  static std::vector<int64_t> stagesOfLayers(ModuleOp module) {
    std::vector<int64_t> stages(*countLayers(module), -1);
    for (auto param : module.getOps<graph::ParamOp>())
      if (std::optional<int64_t> layer = param.getLayer()) {
        int64_t stage = stage::indexOf(param).front();
        EXPECT_TRUE(stages[*layer] == -1 || stages[*layer] == stage) << param.getName().str();
        stages[*layer] = stage;
      }
    return stages;
  }

  /// From and to of all transfers of a function.
  static std::vector<std::pair<int64_t, int64_t>> transfersOf(ModuleOp module, StringRef function) {
    std::vector<std::pair<int64_t, int64_t>> result;
    module.lookupSymbol<graph::FuncOp>(function).walk(
        [&](stage::TransferOp op) { result.emplace_back(op.getFrom(), op.getTo()); });
    return result;
  }
};

} // namespace

TEST_F(StageAssignmentOfModels, LayersAreThoseThatParametersSay) {
  OwningOpRef<ModuleOp> module = build({"gpt2-tiny", 5});
  EXPECT_EQ(*countLayers(*module), 5);
  EXPECT_EQ(module->lookupSymbol<graph::ParamOp>("layers.3.attn.wo").getLayer(), 3);
  EXPECT_EQ(module->lookupSymbol<graph::ParamOp>("embed").getLayer(), std::nullopt);
}

TEST_F(StageAssignmentOfModels, OnlyTheResidualStreamCrossesAndItsGradientComesBack) {
  for (const char *model : hf::test::kModels) {
    SCOPED_TRACE(model);
    OwningOpRef<ModuleOp> module = buildStaged({model, 4}, "pp=3");
    EXPECT_THAT(transfersOf(*module, "loss"), ElementsAre(Pair(0, 1), Pair(1, 2)));
    EXPECT_THAT(transfersOf(*module, "train_microbatch"), ElementsAre(Pair(0, 1), Pair(1, 2), Pair(2, 1), Pair(1, 0)));
    module->lookupSymbol<graph::FuncOp>("train_microbatch").walk([](stage::TransferOp op) {
      EXPECT_EQ(cast<RankedTensorType>(op.getResult().getType()).getShape(), ArrayRef<int64_t>({kBatch, kSeq, 24}));
    });
  }
}

TEST_F(StageAssignmentOfModels, TheStrategySaysWhichLayersAreWhere) {
  OwningOpRef<ModuleOp> module = buildStaged({"llama-tiny", 7}, "pp=3", "[0],[1..4],[5..6]");
  EXPECT_THAT(stagesOfLayers(*module), ElementsAre(0, 1, 1, 1, 1, 2, 2));
}

TEST_F(StageAssignmentOfModels, TheLossCountsForTheLastLayer) {
  OwningOpRef<ModuleOp> module = build({"llama-tiny", 4});
  std::vector<double> costs = LayerAnalysis(module->lookupSymbol<graph::FuncOp>("loss"), *countLayers(*module))
                                  .costs(targets::CostModel(targets::Costs()));
  ASSERT_EQ(costs.size(), 4u);
  EXPECT_GT(costs[0], costs[1]); // the embedding
  EXPECT_EQ(costs[1], costs[2]);
  EXPECT_GT(costs[3], costs[0]); // projection to the vocabulary and loss
}

TEST_F(StageAssignmentOfModels, ATiedTableHasStatesInOneStageAndAnAccumulatorInBoth) {
  OwningOpRef<ModuleOp> module = buildStaged({"llama-tied", 3}, "pp=2");
  auto stageOf = [&](StringRef name) { return stage::indexOf(module->lookupSymbol(name)); };
  EXPECT_THAT(stageOf("embed"), ElementsAre(0));
  EXPECT_THAT(stageOf("embed.m"), ElementsAre(0));
  EXPECT_THAT(stageOf("embed.grad"), ElementsAre(0));
  EXPECT_THAT(stageOf("embed.mirror1"), ElementsAre(1));
  EXPECT_THAT(stageOf("embed.mirror1.grad"), ElementsAre(1));
  EXPECT_EQ(module->lookupSymbol("embed.mirror1.m"), nullptr);
  EXPECT_THAT(stageOf("token_count"), ElementsAre(0, 1));
  EXPECT_THAT(stageOf("step"), ElementsAre(0, 1));
  EXPECT_THAT(stageOf("loss_sum"), ElementsAre(1));
}
