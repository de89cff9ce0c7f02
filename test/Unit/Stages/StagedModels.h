//===- StagedModels.h - Training programs of small models, whole and in stages
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_TEST_UNIT_STAGES_STAGEDMODELS_H
#define BOWLINE_TEST_UNIT_STAGES_STAGEDMODELS_H

#include "dialects/Dist/DistOps.h"
#include "dialects/Graph/GraphOps.h"
#include "dialects/Stage/StageOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Strategy/StrategyFlags.h"
#include "passes/Training/Passes.h"
#include "test/Unit/Sharding/ShardedModel.h"

namespace bowline::test {

constexpr int64_t kBatch = 4, kSeq = 6, kVocabulary = 19;

struct StagedModel {
  const char *model;
  int64_t layers;
  int64_t microbatches = 1;
  double clipNorm = 0;
  bool bf16 = false;
  int64_t batch = kBatch; ///< of all microbatches
};

/// Builds modules in a context of its own.
class StagedModels : public testing::Test {
protected:
  StagedModels() {
    mlir::DialectRegistry registry;
    registry.insert<graph::GraphDialect, dist::DistDialect, stage::StageDialect>();
    graph::registerElementwiseModels(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  /// A training program; with a strategy for several ranks, divided into its stages. \p table is the text of a schedule
  /// that is a file.
  mlir::OwningOpRef<mlir::ModuleOp> build(const StagedModel &c, StrategyFlags flags = {}, llvm::StringRef table = "") {
    hf::ModelConfig config = hf::test::configOf(c.model);
    config.layers = c.layers;
    config.hidden = 24, config.heads = 4, config.headDim = 6;
    config.kvHeads = llvm::StringRef(c.model).starts_with("llama") ? 2 : 4;
    config.intermediate = 20, config.vocabulary = kVocabulary;
    hf::ImportOptions import;
    import.batch = c.batch / c.microbatches;
    import.seq = kSeq;
    absl::StatusOr<mlir::OwningOpRef<mlir::ModuleOp>> module = hf::importModel(context, config, import);
    EXPECT_TRUE(module.ok()) << module.status();
    flags.microbatches = c.microbatches;
    EXPECT_TRUE(succeeded(addStrategyFlags(**module, flags)));
    if (!table.empty())
      dist::StrategyOp::of(**module).getOnly<dist::ScheduleOp>().setTable(table);

    InsertOptimizerOptions optimizer;
    optimizer.clipNorm = c.clipNorm;
    optimizer.lr = 1e-2;
    mlir::PassManager passes(&context);
    passes.addPass(mlir::createCanonicalizerPass());
    passes.addPass(mlir::createCSEPass());
    if (c.bf16)
      passes.addPass(createLowerPrecision());
    passes.addPass(createAssignStages());
    passes.addPass(createDifferentiate());
    passes.addPass(createInsertOptimizer(optimizer));
    passes.addPass(createInsertInit(InsertInitOptions{7}));
    passes.addPass(mlir::createCanonicalizerPass());
    passes.addPass(mlir::createCSEPass());
    passes.addPass(createKeepAccumulators());
    passes.addPass(createLabelStages());
    EXPECT_TRUE(succeeded(passes.run(**module)));
    return std::move(*module);
  }

  /// Whole microbatches; those of several have a leading dimension.
  graph::HostTensor randomTokens(const StagedModel &c, std::mt19937 &random, bool labels) {
    return test::randomTokens(random, c.microbatches, c.batch / c.microbatches, kSeq, kVocabulary, labels);
  }

  /// \p tolerance is relative to the largest value.
  void compare(const graph::HostTensor &expected, const graph::HostTensor &actual, double tolerance,
               llvm::StringRef what) {
    ASSERT_EQ(actual.shape, expected.shape) << what.str();
    EXPECT_LE(distance(expected, actual), tolerance) << what.str();
  }

  mlir::MLIRContext context;
};

} // namespace bowline::test

#endif // BOWLINE_TEST_UNIT_STAGES_STAGEDMODELS_H
