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

/// Of each kind of strategy and each family, with sizes that the ranks do not divide.
inline const SmallCase kSmallCases[] = {
    SmallCase{.name = "llama_one_rank", .model = "llama-tiny", .recompute = "full"},
    SmallCase{.name = "qwen2_one_rank_bf16", .model = "qwen2-tiny", .dtype = "bf16"},
    SmallCase{.name = "llama_selective", .model = "llama-tiny", .recompute = "selective"},
    SmallCase{.name = "gpt2_selective_bf16", .model = "gpt2-tiny", .dtype = "bf16", .recompute = "selective"},
    SmallCase{.name = "gpt2_one_rank_sgd", .model = "gpt2-tiny", .microbatches = 2, .optimizer = "sgd"},
    SmallCase{.name = "llama_dp2_tp2", .model = "llama-tiny", .mesh = "dp=2,tp=2", .microbatches = 2},
    SmallCase{.name = "llama_sequence", .model = "llama-tiny", .mesh = "tp=2", .sequenceParallel = true, .chunks = 2},
    SmallCase{.name = "llama_generates", .model = "llama-tiny", .generates = true},
    SmallCase{.name = "gpt2_generates_tp2_bf16",
              .model = "gpt2-tiny",
              .mesh = "tp=2",
              .dtype = "bf16",
              .chunks = 2,
              .generates = true},
    SmallCase{.name = "llama_shared_keys", .model = "llama-tiny", .mesh = "tp=4", .heads = 4, .keyHeads = 2},
    SmallCase{.name = "tied_zero_1", .model = "llama-tied", .mesh = "dp=2,tp=2", .zero = 1},
    SmallCase{.name = "qwen3_one_rank_bf16", .model = "qwen3-tiny", .dtype = "bf16", .recompute = "full"},
    SmallCase{.name = "qwen3_shared_keys", .model = "qwen3-tiny", .mesh = "tp=4", .heads = 4, .keyHeads = 2},
    SmallCase{.name = "mistral_sequence", .model = "mistral-tiny", .mesh = "tp=2", .sequenceParallel = true},
    SmallCase{.name = "mistral_generates", .model = "mistral-tiny", .generates = true},
    SmallCase{.name = "qwen2_zero_2", .model = "qwen2-tiny", .mesh = "dp=2", .microbatches = 2, .zero = 2},
    SmallCase{.name = "llama_zero_3", .model = "llama-tiny", .mesh = "dp=2,tp=2", .zero = 3},
    SmallCase{.name = "gpt2_tp2_bf16", .model = "gpt2-tiny", .mesh = "tp=2", .dtype = "bf16"},
    SmallCase{.name = "gpt2_zero_3_hybrid", .model = "gpt2-tiny", .mesh = "dp=2,fsdp=2", .zero = 3, .batch = 4},
    SmallCase{.name = "llama_padded_ranks",
              .model = "llama-tiny",
              .mesh = "tp=4",
              .heads = 4,
              .keyHeads = 4,
              .vocabulary = 5},
    SmallCase{.name = "llama_pp2_1f1b", .model = "llama-tiny", .mesh = "pp=2", .microbatches = 4, .layers = 3},
    SmallCase{.name = "tied_pp2_tp2",
              .model = "llama-tied",
              .mesh = "pp=2,tp=2",
              .microbatches = 2,
              .layers = 2,
              .chunks = 2},
    SmallCase{.name = "qwen2_zb_h1_dp2",
              .model = "qwen2-tiny",
              .mesh = "pp=2,dp=2",
              .microbatches = 2,
              .schedule = "zb_h1",
              .layers = 2},
    SmallCase{.name = "gpt2_interleaved",
              .model = "gpt2-tiny",
              .mesh = "pp=2",
              .microbatches = 2,
              .schedule = "interleaved:2",
              .layers = 4},
    SmallCase{.name = "tied_zb_v_zero_3",
              .model = "llama-tied",
              .mesh = "pp=2,dp=2,tp=2",
              .microbatches = 4,
              .zero = 3,
              .schedule = "zb_v",
              .layers = 4},
};

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
