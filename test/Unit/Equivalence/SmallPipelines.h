//===- SmallPipelines.h - Models and strategies that are interpreted quickly
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_TEST_UNIT_EQUIVALENCE_SMALLPIPELINES_H
#define BOWLINE_TEST_UNIT_EQUIVALENCE_SMALLPIPELINES_H

#include "compiler/Pipelines/VerifySteps.h"
#include "compiler/Support/Registration.h"
#include "frontends/hf/Import.h"
#include "passes/Strategy/StrategyFlags.h"
#include "test/Unit/Frontends/HfTestSupport.h"

namespace bowline::test {

struct SmallCase {
  const char *name, *model;
  const char *mesh = "";
  int64_t microbatches = 1;
  bool sequenceParallel = false;
  int64_t zero = 0;
  const char *schedule = "";
  int64_t layers = 1, heads = 2, keyHeads = 2;
  int64_t vocabulary = 7, intermediate = 5; // which nothing divides
  const char *dtype = "f32", *recompute = "none", *optimizer = "adamw";
  int64_t batch = 2; // sequences of a microbatch
  int64_t chunks = 1;
  bool generates = false; // instead of training
};

inline void PrintTo(const SmallCase &c, std::ostream *os) { *os << c.name; }

/// Modules in a context that knows all of Bowline's dialects.
class SmallPipelines : public testing::Test {
protected:
  static constexpr int64_t kSeq = 4;

  SmallPipelines() : context(registry(), mlir::MLIRContext::Threading::DISABLED) { context.loadAllAvailableDialects(); }

  static mlir::DialectRegistry registry() {
    mlir::DialectRegistry registry;
    registerAllDialects(registry);
    return registry;
  }

  /// The model as a frontend gives it, with its strategy. Null after a test failure.
  mlir::OwningOpRef<mlir::ModuleOp> build(const SmallCase &c) {
    hf::ModelConfig config = hf::test::configOf(c.model);
    config.layers = c.layers, config.heads = c.heads, config.kvHeads = c.keyHeads;
    config.headDim = 2, config.hidden = config.heads * config.headDim;
    config.intermediate = c.intermediate, config.vocabulary = c.vocabulary, config.maxPositions = kSeq + 1;
    hf::ImportOptions import;
    import.mode = c.generates ? hf::ImportMode::Generate : hf::ImportMode::Train;
    import.batch = c.generates ? 1 : c.batch;
    import.seq = kSeq;
    absl::StatusOr<mlir::OwningOpRef<mlir::ModuleOp>> module = hf::importModel(context, config, import);
    EXPECT_TRUE(module.ok()) << module.status();
    if (!module.ok())
      return {};
    StrategyFlags flags;
    flags.mesh = c.mesh;
    flags.sequenceParallel = c.sequenceParallel;
    flags.zero = c.zero;
    flags.schedule = c.schedule;
    flags.microbatches = c.microbatches;
    flags.recompute = c.recompute;
    flags.overlapChunks = c.chunks;
    EXPECT_TRUE(mlir::succeeded(addStrategyFlags(**module, flags)));
    return std::move(*module);
  }

  static PipelineOptions options(const SmallCase &c) {
    PipelineOptions options;
    options.seed = 3;
    options.training = !c.generates;
    options.dtype = c.dtype;
    options.optimizer.kind = c.optimizer;
    options.optimizer.weightDecay = 0.1;
    options.optimizer.clipNorm = 1.0;
    options.optimizer.lr = 1e-2;
    options.hasSmallSizes = true;
    options.codegen.hasCode = false; // nothing runs it
    return options;
  }

  mlir::MLIRContext context;
};

} // namespace bowline::test

#endif // BOWLINE_TEST_UNIT_EQUIVALENCE_SMALLPIPELINES_H
