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

#include "compiler/Interp/DistributedInterpreter.h"
#include "dialects/Graph/GraphOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Sharding/Passes.h"
#include "passes/Training/Passes.h"
#include "test/Unit/Sharding/ShardedModel.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::test;
using graph::HostTensor;

namespace {

struct Case {
  const char *name, *model;
  int64_t dp, tp, microbatches;
  bool vocabulary; // embedding and head are cut too
  bool sequenceParallel = false;
};

void PrintTo(const Case &c, std::ostream *os) { *os << c.name; }

constexpr int64_t kBatch = 4, kSeq = 6, kSteps = 3, kVocabulary = 20;

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
    OwningOpRef<ModuleOp> module = smallModel(context, c.model, kVocabulary, kBatch / c.microbatches, kSeq);
    DifferentiateOptions differentiate;
    differentiate.microbatches = c.microbatches;
    InsertOptimizerOptions optimizer;
    optimizer.microbatches = c.microbatches;
    optimizer.weightDecay = 0.1;
    optimizer.clipNorm = 1.0;
    optimizer.lr = 1e-2;
    PassManager passes(&context);
    passes.addPass(createDifferentiate(differentiate));
    passes.addPass(createInsertOptimizer(optimizer));
    passes.addPass(createInsertInit(InsertInitOptions{7}));
    passes.addPass(createCanonicalizerPass());
    passes.addPass(createCSEPass());
    EXPECT_TRUE(succeeded(passes.run(*module)));
    return module;
  }

  /// Shards as the flags of a user would, and the vocabulary by hand.
  void shard(ModuleOp module) {
    const Case &c = GetParam();
    ApplyStrategyOptions options;
    options.mesh = "dp=" + std::to_string(c.dp) + ",tp=" + std::to_string(c.tp);
    options.sequenceParallel = c.sequenceParallel;
    PassManager strategy(&context);
    strategy.addPass(createApplyStrategy(options));
    ASSERT_TRUE(succeeded(strategy.run(module)));
    SmallVector<SmallVector<StringAttr>> rows = {{StringAttr::get(&context, "tp")}, {}};
    for (auto param : module.getOps<graph::ParamOp>())
      if (c.vocabulary && llvm::is_contained({"embed", "head"}, param.getName()))
        param->setAttr(dist::DistDialect::kShardingAttr, dist::ShardingAttr::get(&context, rows));
    PassManager passes(&context);
    passes.addPass(createPropagateShardings());
    passes.addPass(createGlobalToLocal());
    passes.addPass(createCanonicalizerPass());
    passes.addPass(createCSEPass());
    ASSERT_TRUE(succeeded(passes.run(module)));
  }

  HostTensor tokens(std::mt19937 &random, bool labels) {
    int64_t microbatches = GetParam().microbatches;
    return randomTokens(random, microbatches, kBatch / microbatches, kSeq, kVocabulary, labels);
  }

  MLIRContext context;
};

} // namespace

TEST_P(ShardedTraining, EqualsOneRank) {
  OwningOpRef<ModuleOp> whole = build();
  OwningOpRef<ModuleOp> local = whole->clone();
  ASSERT_NO_FATAL_FAILURE(shard(*local));

  Interpreter one(*whole);
  DistributedInterpreter many(*local);
  ASSERT_TRUE(succeeded(one.initializeVariables()));
  ASSERT_TRUE(succeeded(many.initialize()));
  for (auto param : whole->getOps<graph::ParamOp>()) {
    FailureOr<HostTensor> value = many.getVariable(param.getName());
    ASSERT_TRUE(succeeded(value));
    EXPECT_EQ(value->data, one.getVariable(param.getName())->data) << param.getName().str(); // the same random numbers
  }
  std::mt19937 random(3);
  for (int64_t step = 0; step < kSteps; ++step) {
    HostTensor inputs[] = {tokens(random, false), tokens(random, true)};
    auto expected = one.run("train_step", inputs);
    auto actual = many.run("train_step", inputs);
    ASSERT_TRUE(succeeded(expected) && succeeded(actual));
    for (auto [a, b] : llvm::zip_equal(*expected, *actual))
      EXPECT_LT(distance(a, b), 1e-11) << "step " << step;
  }
  for (auto param : whole->getOps<graph::ParamOp>()) {
    FailureOr<HostTensor> value = many.getVariable(param.getName());
    ASSERT_TRUE(succeeded(value));
    EXPECT_LT(distance(*one.getVariable(param.getName()), *value), 1e-9) << param.getName().str();
  }
}

INSTANTIATE_TEST_SUITE_P(Meshes, ShardedTraining,
                         testing::Values(Case{"llama_dp2", "llama-tiny", 2, 1, 1, false},
                                         Case{"llama_tp2", "llama-tiny", 1, 2, 1, false},
                                         Case{"llama_dp2_tp2", "llama-tiny", 2, 2, 2, false},
                                         Case{"llama_vocabulary_tp2", "llama-tiny", 1, 2, 1, true},
                                         Case{"llama_vocabulary_dp2_tp2", "llama-tiny", 2, 2, 2, true},
                                         Case{"tied_dp2_tp2", "llama-tied", 2, 2, 1, false},
                                         Case{"tied_vocabulary_dp2_tp2", "llama-tied", 2, 2, 1, true},
                                         Case{"qwen2_tp4", "qwen2-tiny", 1, 4, 1, false},
                                         Case{"qwen2_vocabulary_tp4", "qwen2-tiny", 1, 4, 1, true},
                                         Case{"qwen2_dp4", "qwen2-tiny", 4, 1, 1, false},
                                         Case{"gpt2_dp2_tp2", "gpt2-tiny", 2, 2, 2, false},
                                         Case{"gpt2_vocabulary_dp2_tp2", "gpt2-tiny", 2, 2, 2, true},
                                         Case{"llama_whole_keys_tp4", "llama-tiny", 1, 4, 1, false},
                                         Case{"llama_sequence_dp2_tp2", "llama-tiny", 2, 2, 2, false, true},
                                         Case{"llama_sequence_vocabulary_dp2_tp2", "llama-tiny", 2, 2, 2, true, true},
                                         Case{"tied_sequence_tp2", "llama-tied", 1, 2, 1, false, true},
                                         Case{"qwen2_sequence_tp2", "qwen2-tiny", 1, 2, 2, false, true},
                                         Case{"gpt2_sequence_dp2_tp2", "gpt2-tiny", 2, 2, 1, false, true}),
                         [](const auto &info) { return std::string(info.param.name); });
