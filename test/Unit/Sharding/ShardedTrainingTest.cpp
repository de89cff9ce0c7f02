//===- ShardedTrainingTest.cpp - Sharded programs train as the whole program does
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// A training step is built from a model, propagated, made local, and run on all ranks of a mesh by the reference
// interpreter, beside the same step on one rank. Everything is f64, so that only the order of additions differs.
//
//===----------------------------------------------------------------------===//

#include <random>

#include "dialects/Graph/GraphOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Local/Passes.h"
#include "passes/Sharding/Passes.h"
#include "passes/Strategy/StrategyFlags.h"
#include "passes/Training/Passes.h"
#include "test/Unit/Sharding/RanksBesideOne.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::test;
using graph::HostTensor;

namespace {

struct Case {
  const char *name, *model;
  int64_t dp = 1, tp = 1, microbatches = 1;
  bool sequenceParallel = false;
  bool wholeVocabulary = false; // embedding and head are not cut
  bool bf16 = false;            // casts are there, and round nothing
  ModelSizes sizes = {};
  /// A parameter, and the shape of a rank's part of it.
  const char *parameter = nullptr;
  std::vector<int64_t> local = {};
};

void PrintTo(const Case &c, std::ostream *os) { *os << c.name; }

constexpr int64_t kBatch = 4, kSeq = 8, kSteps = 3;

class ShardedTraining : public testing::TestWithParam<Case> {
protected:
  ShardedTraining() {
    DialectRegistry registry;
    registry.insert<graph::GraphDialect, dist::DistDialect>();
    graph::registerElementwiseModels(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  OwningOpRef<ModuleOp> build() {
    const Case &c = GetParam();
    OwningOpRef<ModuleOp> module = smallModel(context, c.model, c.sizes, kBatch / c.microbatches, kSeq);
    EXPECT_TRUE(succeeded(addStrategyFlags(*module, {.microbatches = c.microbatches})));
    InsertOptimizerOptions optimizer;
    optimizer.weightDecay = 0.1;
    optimizer.clipNorm = 1.0;
    optimizer.lr = 1e-2;
    PassManager passes(&context);
    if (c.bf16)
      passes.addPass(createLowerPrecision());
    passes.addPass(createDifferentiate());
    passes.addPass(createInsertOptimizer(optimizer));
    passes.addPass(createInsertInit(InsertInitOptions{7}));
    passes.addPass(createCanonicalizerPass());
    passes.addPass(createCSEPass());
    EXPECT_TRUE(succeeded(passes.run(*module)));
    return module;
  }

  /// Shards as the flags of a user would, with the batch divided over \p dp ranks.
  void shard(ModuleOp module, int64_t dp) {
    const Case &c = GetParam();
    StrategyFlags flags;
    flags.mesh = "dp=" + std::to_string(dp) + ",tp=" + std::to_string(c.tp);
    flags.sequenceParallel = c.sequenceParallel;
    ASSERT_TRUE(succeeded(addStrategyFlags(module, flags)));
    PassManager strategy(&context);
    strategy.addPass(createApplyStrategy());
    ASSERT_TRUE(succeeded(strategy.run(module)));
    for (auto param : module.getOps<graph::ParamOp>())
      if (c.wholeVocabulary && llvm::is_contained({"embed", "head"}, param.getName()))
        param->setAttr(dist::DistDialect::kShardingAttr, dist::ShardingAttr::replicated(&context, 2));
    PassManager passes(&context);
    passes.addPass(createPadForDivisibility());
    passes.addPass(createPropagateShardings());
    passes.addPass(createGlobalToLocal());
    passes.addPass(createCanonicalizerPass());
    passes.addPass(createCSEPass());
    ASSERT_TRUE(succeeded(passes.run(module)));
  }

  HostTensor tokens(std::mt19937 &random, bool labels) {
    const Case &c = GetParam();
    return randomTokens(random, c.microbatches, kBatch / c.microbatches, kSeq, c.sizes.vocabulary, labels);
  }

  MLIRContext context;
};

} // namespace

TEST_P(ShardedTraining, EqualsOneRank) {
  OwningOpRef<ModuleOp> whole = build();
  OwningOpRef<ModuleOp> local = whole->clone();
  ASSERT_NO_FATAL_FAILURE(shard(*local, GetParam().dp));

  RanksBesideOne ranks(*whole, *local);
  for (auto param : whole->getOps<graph::ParamOp>())
    ranks.expectSameVariable(param.getName(), 0); // the same random numbers
  std::mt19937 random(3);
  for (int64_t step = 0; step < kSteps; ++step) {
    SCOPED_TRACE(step);
    ranks.expectSameResults("train_step", {tokens(random, false), tokens(random, true)}, 1e-11);
  }
  for (Operation &op : *whole->getBody()) {
    auto state = dyn_cast<graph::StateOp>(op);
    if (isa<graph::ParamOp>(op) || (state && !state.isAccumulator()))
      ranks.expectSameVariable(SymbolTable::getSymbolName(&op).getValue(), 1e-9);
  }
  if (GetParam().parameter)
    EXPECT_EQ(ranks.many.getLocal(0, GetParam().parameter)->shape, GetParam().local);
}

TEST_P(ShardedTraining, GeneratesAsOneRank) {
  const Case &c = GetParam();
  OwningOpRef<ModuleOp> whole = smallModel(context, c.model, c.sizes, 1, kSeq, hf::ImportMode::Generate);
  ASSERT_TRUE(whole);
  PassManager init(&context);
  init.addPass(createInsertInit(InsertInitOptions{7}));
  ASSERT_TRUE(succeeded(init.run(*whole)));
  OwningOpRef<ModuleOp> local = whole->clone();
  ASSERT_NO_FATAL_FAILURE(shard(*local, /*dp=*/1));
  std::mt19937 random(5);
  HostTensor position(std::vector<int64_t>{1});
  position.data[0] = kSeq - 3;
  RanksBesideOne(*whole, *local)
      .expectSameResults("logits", {randomTokens(random, 1, 1, kSeq, c.sizes.vocabulary, false), position}, 1e-12);
}

INSTANTIATE_TEST_SUITE_P(
    Meshes, ShardedTraining,
    testing::Values(
        Case{.name = "llama_dp2", .model = "llama-tiny", .dp = 2, .sizes = {.keyHeads = 2}},
        Case{.name = "llama_whole_vocabulary_tp2",
             .model = "llama-tiny",
             .tp = 2,
             .wholeVocabulary = true,
             .sizes = {.keyHeads = 2},
             .parameter = "embed",
             .local = {20, 24}},
        Case{.name = "llama_tp2",
             .model = "llama-tiny",
             .tp = 2,
             .sizes = {.keyHeads = 2},
             .parameter = "embed",
             .local = {10, 24}},
        Case{.name = "llama_dp2_tp2",
             .model = "llama-tiny",
             .dp = 2,
             .tp = 2,
             .microbatches = 2,
             .sizes = {.keyHeads = 2}},
        Case{.name = "tied_whole_vocabulary_dp2_tp2",
             .model = "llama-tied",
             .dp = 2,
             .tp = 2,
             .wholeVocabulary = true,
             .sizes = {.keyHeads = 2}},
        Case{.name = "tied_dp2_tp2", .model = "llama-tied", .dp = 2, .tp = 2, .sizes = {.keyHeads = 2}},
        Case{.name = "qwen2_whole_vocabulary_tp4", .model = "qwen2-tiny", .tp = 4, .wholeVocabulary = true},
        Case{.name = "qwen2_tp4", .model = "qwen2-tiny", .tp = 4},
        Case{.name = "qwen2_dp4", .model = "qwen2-tiny", .dp = 4},
        Case{.name = "qwen3_tp4", .model = "qwen3-tiny", .tp = 4},
        Case{.name = "mistral_tp4", .model = "mistral-tiny", .tp = 4},
        Case{.name = "llama_sequence_dp2_tp2",
             .model = "llama-tiny",
             .dp = 2,
             .tp = 2,
             .microbatches = 2,
             .sequenceParallel = true,
             .sizes = {.keyHeads = 2}},
        Case{.name = "llama_sequence_whole_vocabulary_dp2_tp2",
             .model = "llama-tiny",
             .dp = 2,
             .tp = 2,
             .microbatches = 2,
             .sequenceParallel = true,
             .wholeVocabulary = true,
             .sizes = {.keyHeads = 2}},
        Case{.name = "tied_sequence_tp2",
             .model = "llama-tied",
             .tp = 2,
             .sequenceParallel = true,
             .sizes = {.keyHeads = 2}},
        Case{
            .name = "qwen2_sequence_tp2", .model = "qwen2-tiny", .tp = 2, .microbatches = 2, .sequenceParallel = true}),
    [](const auto &info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Padded, ShardedTraining,
    testing::Values(
        Case{.name = "llama_vocabulary_tp2",
             .model = "llama-tiny",
             .tp = 2,
             .sizes = {.vocabulary = 19, .keyHeads = 2},
             .parameter = "head",
             .local = {10, 24}},
        Case{.name = "llama_vocabulary_tp3",
             .model = "llama-tiny",
             .tp = 3,
             .sizes = {.vocabulary = 17, .heads = 6, .keyHeads = 3, .headDim = 4},
             .parameter = "embed",
             .local = {6, 24}},
        Case{.name = "llama_bf16_dp2_tp2",
             .model = "llama-tiny",
             .dp = 2,
             .tp = 2,
             .microbatches = 2,
             .bf16 = true,
             .sizes = {.vocabulary = 19, .intermediate = 21}},
        Case{.name = "tied_bf16_sequence_tp4",
             .model = "llama-tied",
             .tp = 4,
             .sequenceParallel = true,
             .bf16 = true,
             .sizes = {.vocabulary = 11, .intermediate = 13, .keyHeads = 2}},
        Case{.name = "llama_vocabulary_tp4", .model = "llama-tiny", .tp = 4, .sizes = {.vocabulary = 13}},
        Case{.name = "llama_whole_heads_tp3",
             .model = "llama-tiny",
             .tp = 3,
             .sizes = {.vocabulary = 23, .intermediate = 19}},
        Case{.name = "ranks_without_classes_tp4", .model = "llama-tiny", .tp = 4, .sizes = {.vocabulary = 5}},
        Case{.name = "ranks_without_classes_tied_tp8",
             .model = "llama-tied",
             .tp = 8,
             .sizes = {.vocabulary = 3, .heads = 8, .keyHeads = 8, .headDim = 2}},
        Case{.name = "llama_mlp_tp2",
             .model = "llama-tiny",
             .tp = 2,
             .sizes = {.intermediate = 21, .keyHeads = 2},
             .parameter = "layers.1.mlp.w_down",
             .local = {24, 11}},
        Case{.name = "llama_mlp_dp2_tp4",
             .model = "llama-tiny",
             .dp = 2,
             .tp = 4,
             .microbatches = 2,
             .sizes = {.intermediate = 22}},
        Case{.name = "gpt2_mlp_tp4",
             .model = "gpt2-tiny",
             .tp = 4,
             .sizes = {.vocabulary = 11, .intermediate = 29},
             .parameter = "layers.0.mlp.b_up",
             .local = {8}},
        Case{.name = "gpt2_dp2_tp2",
             .model = "gpt2-tiny",
             .dp = 2,
             .tp = 2,
             .microbatches = 2,
             .sizes = {.vocabulary = 7, .intermediate = 31}},
        Case{.name = "tied_dp2_tp4",
             .model = "llama-tied",
             .dp = 2,
             .tp = 4,
             .microbatches = 2,
             .sizes = {.vocabulary = 17, .intermediate = 23}},
        Case{.name = "tied_sequence_tp4",
             .model = "llama-tied",
             .tp = 4,
             .sequenceParallel = true,
             .sizes = {.vocabulary = 11, .intermediate = 13}},
        Case{.name = "llama_sequence_dp2_tp2",
             .model = "llama-tiny",
             .dp = 2,
             .tp = 2,
             .microbatches = 2,
             .sequenceParallel = true,
             .sizes = {.vocabulary = 23, .intermediate = 17}},
        Case{.name = "qwen2_sequence_tp4",
             .model = "qwen2-tiny",
             .tp = 4,
             .microbatches = 4,
             .sequenceParallel = true,
             .sizes = {.vocabulary = 29, .intermediate = 18}}),
    [](const auto &info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(
    FusedProjection, ShardedTraining,
    testing::Values(
        Case{.name = "tp2", .model = "gpt2-tiny", .tp = 2, .parameter = "layers.0.attn.wqkv", .local = {24, 3, 12}},
        Case{.name = "tp4", .model = "gpt2-tiny", .tp = 4, .parameter = "layers.1.attn.bqkv", .local = {3, 6}},
        Case{.name = "whole_heads_tp3",
             .model = "gpt2-tiny",
             .tp = 3,
             .parameter = "layers.0.attn.wqkv",
             .local = {24, 72}},
        Case{.name = "dp2_tp2", .model = "gpt2-tiny", .dp = 2, .tp = 2, .microbatches = 2, .wholeVocabulary = true},
        Case{.name = "bf16_sequence_tp2",
             .model = "gpt2-tiny",
             .tp = 2,
             .sequenceParallel = true,
             .bf16 = true,
             .sizes = {.vocabulary = 7}},
        Case{.name = "sequence_dp2_tp2", .model = "gpt2-tiny", .dp = 2, .tp = 2, .sequenceParallel = true},
        Case{.name = "sequence_tp4",
             .model = "gpt2-tiny",
             .tp = 4,
             .microbatches = 2,
             .sequenceParallel = true,
             .sizes = {.vocabulary = 13}}),
    [](const auto &info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(
    SharedKeyHeads, ShardedTraining,
    testing::Values(
        Case{.name = "one_tp2",
             .model = "llama-tiny",
             .tp = 2,
             .sizes = {.keyHeads = 1},
             .parameter = "layers.0.attn.wk",
             .local = {6, 24}},
        Case{.name = "one_tp4", .model = "llama-tiny", .tp = 4, .sizes = {.keyHeads = 1}},
        Case{.name = "one_tp8", .model = "llama-tiny", .tp = 8, .sizes = {.heads = 8, .keyHeads = 1, .headDim = 4}},
        Case{.name = "two_tp4",
             .model = "llama-tiny",
             .tp = 4,
             .sizes = {.keyHeads = 2},
             .parameter = "layers.0.attn.wk",
             .local = {6, 24}},
        Case{.name = "two_tp8",
             .model = "llama-tiny",
             .tp = 8,
             .sizes = {.heads = 8, .keyHeads = 2, .headDim = 4},
             .parameter = "layers.1.attn.wv",
             .local = {4, 32}},
        Case{.name = "four_tp8",
             .model = "qwen2-tiny",
             .tp = 8,
             .sizes = {.heads = 8, .keyHeads = 4, .headDim = 4},
             .parameter = "layers.1.attn.bk",
             .local = {4}},
        Case{.name = "norms_of_heads_tp4", .model = "qwen3-tiny", .tp = 4, .microbatches = 2, .sizes = {.keyHeads = 2}},
        Case{.name = "biases_tp4", .model = "qwen2-tiny", .tp = 4, .microbatches = 2, .sizes = {.keyHeads = 2}},
        Case{.name = "dp2_tp4",
             .model = "llama-tiny",
             .dp = 2,
             .tp = 4,
             .microbatches = 2,
             .sizes = {.vocabulary = 17, .intermediate = 19, .keyHeads = 2}},
        Case{
            .name = "sequence_tp4", .model = "llama-tiny", .tp = 4, .sequenceParallel = true, .sizes = {.keyHeads = 2}},
        Case{.name = "sequence_dp2_tp4",
             .model = "qwen2-tiny",
             .dp = 2,
             .tp = 4,
             .microbatches = 2,
             .sequenceParallel = true,
             .sizes = {.vocabulary = 13, .intermediate = 22, .keyHeads = 2}},
        Case{.name = "tied_sequence_one_tp4",
             .model = "llama-tied",
             .tp = 4,
             .sequenceParallel = true,
             .sizes = {.vocabulary = 11, .keyHeads = 1}}),
    [](const auto &info) { return std::string(info.param.name); });
