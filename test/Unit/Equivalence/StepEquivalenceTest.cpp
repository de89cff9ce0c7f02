//===- StepEquivalenceTest.cpp - Every step keeps what models compute, under every kind of strategy
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Fusion/Passes.h"
#include "passes/Memory/Passes.h"
#include "test/Unit/Equivalence/SmallPipelines.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::test;

namespace {

class StepEquivalence : public SmallPipelines, public testing::WithParamInterface<SmallCase> {};

} // namespace

TEST_P(StepEquivalence, HoldsDownToMemory) {
  OwningOpRef<ModuleOp> module = build(GetParam());
  ASSERT_TRUE(module);
  FailureOr<EquivalenceChecker::Summary> summary = verifySteps(*module, options(GetParam()), Phase::Input, Phase::Plan);
  ASSERT_TRUE(succeeded(summary));
  EXPECT_GE(summary->steps, 18);
  EXPECT_EQ(summary->undefined, 0);
  EXPECT_GT(summary->gradients, 10);
}

TEST_F(SmallPipelines, StepsForLargeSizesHoldToo) {
  // With other thresholds they have something to do here.
  const SmallCase cases[] = {{.name = "", .model = "llama-tiny"},
                             {.name = "", .model = "gpt2-tiny", .mesh = "dp=2", .microbatches = 2}};
  for (const SmallCase &c : cases) {
    int64_t changing[2];
    for (bool forced : {false, true}) {
      OwningOpRef<ModuleOp> module = build(c);
      PipelineOptions pipeline = options(c);
      if (!forced)
        pipeline.disabledSteps = {"tile-loss", "split-column-reductions", "pack-weights"};
      std::vector<Step> steps;
      for (Step &step : stepsToRun(*module, pipeline, Phase::Input, Phase::Plan)) {
        steps.push_back(std::move(step));
        if (forced && steps.back().name == "pack-weights")
          steps.back().create = [] {
            PackWeightsOptions options;
            options.minSaving = options.minPersistentSaving = -1e6;
            return createPackWeights(options);
          };
        if (forced && steps.back().name == "tile-loss")
          steps.back().create = [] {
            TileLossOptions options;
            options.tileBytes = 64;
            options.minPositions = 1;
            return createTileLoss(options);
          };
        if (forced && steps.back().name == "split-column-reductions")
          steps.back().create = [] {
            SplitColumnReductionsOptions options;
            options.maxBlocks = 2;
            options.minRows = 1;
            return createSplitColumnReductions(options);
          };
      }
      FailureOr<EquivalenceChecker::Summary> summary = verifySteps(*module, steps);
      ASSERT_TRUE(succeeded(summary));
      changing[forced] = summary->steps;
    }
    EXPECT_EQ(changing[1], changing[0] + 3);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Strategies, StepEquivalence,
    testing::Values(
        SmallCase{.name = "llama_one_rank", .model = "llama-tiny", .recompute = "full"},
        SmallCase{.name = "qwen2_one_rank_bf16", .model = "qwen2-tiny", .dtype = "bf16"},
        SmallCase{.name = "llama_selective", .model = "llama-tiny", .recompute = "selective"},
        SmallCase{.name = "gpt2_selective_bf16", .model = "gpt2-tiny", .dtype = "bf16", .recompute = "selective"},
        SmallCase{.name = "gpt2_one_rank_sgd", .model = "gpt2-tiny", .microbatches = 2, .optimizer = "sgd"},
        SmallCase{.name = "llama_dp2_tp2", .model = "llama-tiny", .mesh = "dp=2,tp=2", .microbatches = 2},
        SmallCase{.name = "llama_sequence", .model = "llama-tiny", .mesh = "tp=2", .sequenceParallel = true},
        SmallCase{.name = "llama_shared_keys", .model = "llama-tiny", .mesh = "tp=4", .heads = 4, .keyHeads = 2},
        SmallCase{.name = "tied_zero_1", .model = "llama-tied", .mesh = "dp=2,tp=2", .zero = 1},
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
        SmallCase{.name = "tied_pp2_tp2", .model = "llama-tied", .mesh = "pp=2,tp=2", .microbatches = 2, .layers = 2},
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
                  .layers = 4}),
    [](const auto &info) { return std::string(info.param.name); });
