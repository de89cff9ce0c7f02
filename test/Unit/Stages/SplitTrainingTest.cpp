//===- SplitTrainingTest.cpp - The programs of a pipeline's ranks train as the whole program does
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// All ranks run together, each in the order of its timeline, with rendezvous between them and no more slots than their
// states have. The reference is the undivided program on one rank.
//
//===----------------------------------------------------------------------===//

#include <fstream>

#include "compiler/Interp/PipelinedInterpreter.h"
#include "test/Unit/Stages/TrainingInStages.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::test;
using graph::HostTensor;

namespace {

/// Neighbours on one rank, and backwards that are whole in one microbatch and split in the other.
constexpr const char *kNeighbours = "0F0,1F0,0F1,1F1,1B0,0B0,1I1,0I1,1W1,0W1\n"
                                    "2F0,3F0,3B0,2B0,2F1,3F1,3I1,2I1,2W1,3W1\n";

/// Three neighbours on one rank; weights run in another order than inputs.
constexpr const char *kThreeNeighbours = "0F0,1F0,2F0,0F1,1F1,2F1,2I0,1I0,2I1,0I0,1I1,0I1,0W1,2W0,1W1,0W0,2W1,1W0\n"
                                         "3F0,4F0,5F0,5I0,4I0,3I0,3F1,4F1,5F1,5I1,5W1,4I1,3I1,3W1,5W0,4W0,3W0,4W1\n";

class SplitTraining : public TrainingInStages {
protected:
  OwningOpRef<ModuleOp> buildSplit() {
    const StagedCase &c = GetParam();
    StrategyFlags split = flags();
    StringRef table = StringRef(c.schedule).contains('\n') ? c.schedule : "";
    if (!table.empty())
      split.schedule = "table.csv";
    OwningOpRef<ModuleOp> module = build(c.model, split, table);
    addEvaluation(*module);
    PassManager passes(&context);
    passes.addPass(createApplyStrategy());
    addDivision(passes);
    passes.addPass(createSplitStages());
    OpPassManager &nested = passes.nest<ModuleOp>();
    nested.addPass(createLowerCollectives());
    nested.addPass(createCanonicalizerPass());
    nested.addPass(createCSEPass());
    nested.addPass(createCoalesceCollectives());
    EXPECT_TRUE(succeeded(passes.run(*module)));
    return module;
  }

  void addEvaluation(ModuleOp module) {
    auto builder = OpBuilder::atBlockEnd(module.getBody());
    graph::EntryOp::create(builder, module.getLoc(), EntryKind::EvalStep, "eval_step",
                           builder.getArrayAttr(FlatSymbolRefAttr::get(&context, "loss")), ArrayRef<int64_t>{1});
  }
};

PipelinedInterpreter::Arguments argumentsOf(const HostTensor &tokens, const HostTensor &labels) {
  PipelinedInterpreter::Arguments arguments;
  arguments.try_emplace("tokens", tokens);
  arguments.try_emplace("labels", labels);
  return arguments;
}

} // namespace

TEST_P(SplitTraining, EqualsTheWholeProgram) {
  const StagedCase &c = GetParam();
  OwningOpRef<ModuleOp> whole = build(c.model);
  addEvaluation(*whole);
  OwningOpRef<ModuleOp> split = buildSplit();
  ASSERT_EQ(static_cast<int64_t>(llvm::range_size(split->getOps<ModuleOp>())), c.ranks);

  Interpreter one(*whole);
  PipelinedInterpreter many(*split, "pp");
  ASSERT_TRUE(succeeded(one.initializeVariables()) && succeeded(many.initialize()));
  auto compareVariables = [&](double tolerance) {
    auto lookup = [&](StringRef name) { return many.getVariable(name); };
    compareParameters(*whole, one, *split, lookup, tolerance);
  };
  compareVariables(0);

  std::mt19937 random(5);
  StagedModel microbatch = c.model;
  microbatch.batch /= c.model.microbatches;
  microbatch.microbatches = 1;
  for (int64_t step = 0; step < 2; ++step) {
    SCOPED_TRACE(step);
    HostTensor tokens = randomTokens(c.model, random, false), labels = randomTokens(c.model, random, true);
    compareSteps(one.run("train_step", {tokens, labels}), many.run("train_step", argumentsOf(tokens, labels)), 1e-11,
                 1e-11);
    compareVariables(1e-11);

    HostTensor inputs = randomTokens(microbatch, random, false), targets = randomTokens(microbatch, random, true);
    auto expected = one.run("eval_step", {inputs, targets});
    auto actual = many.run("eval_step", argumentsOf(inputs, targets));
    ASSERT_TRUE(succeeded(expected) && succeeded(actual));
    compare((*expected)[0], (*actual)[0], 1e-11, "sum of losses");
    compare((*expected)[1], (*actual)[1], 0, "tokens");
  }
  auto counter = many.getVariable("step");
  ASSERT_TRUE(succeeded(counter));
  EXPECT_EQ(counter->data[0], 2);
}

INSTANTIATE_TEST_SUITE_P(
    Models, SplitTraining,
    testing::Values(
        StagedCase{"llama_1f1b_2", {"llama-tiny", 2, 4}, 2},
        StagedCase{"llama_1f1b_5_in_3", {"llama-tiny", 5, 4, 0.1}, 3},
        StagedCase{"llama_1f1b_7_in_4", {"llama-tiny", 7, 8, 0, false, 8}, 4, "1f1b", "[0..0],[1..3],[4..4],[5..6]"},
        StagedCase{"llama_one_microbatch", {"llama-tiny", 3, 1}, 3},
        StagedCase{"llama_gpipe", {"llama-tiny", 5, 4}, 3, "gpipe"},
        StagedCase{"llama_interleaved", {"llama-tiny", 6, 4}, 2, "interleaved:3"},
        StagedCase{"llama_interleaved_3", {"llama-tiny", 7, 6, 1.0, false, 6}, 3, "interleaved:2"},
        StagedCase{"llama_breadth_first", {"llama-tiny", 5, 5, 0, false, 5}, 2, "breadth_first:2"},
        StagedCase{"llama_zb_h1", {"llama-tiny", 5, 5, 0, false, 5}, 3, "zb_h1"},
        StagedCase{"llama_zb_h2", {"llama-tiny", 4, 8, 1.0, false, 8}, 4, "zb_h2"},
        StagedCase{"llama_zb_v", {"llama-tiny", 5, 4}, 2, "zb_v"},
        StagedCase{"llama_dualpipe_v", {"llama-tiny", 5, 4}, 2, "dualpipe_v"},
        StagedCase{"llama_bf16", {"llama-tiny", 3, 4, 0, true}, 2},
        StagedCase{"tied_1f1b_3", {"llama-tied", 5, 4, 1.0}, 3},
        StagedCase{"tied_interleaved", {"llama-tied", 4, 4, 1.0}, 2, "interleaved:2"},
        StagedCase{"tied_zb_h1", {"llama-tied", 4, 4}, 4, "zb_h1"},
        StagedCase{"tied_zb_v", {"llama-tied", 5, 4}, 2, "zb_v"},
        StagedCase{"tied_zb_v_3", {"llama-tied", 6, 6, 1.0, false, 6}, 3, "zb_v"},
        StagedCase{"tied_dualpipe_v", {"llama-tied", 4, 4, 1.0}, 2, "dualpipe_v"},
        StagedCase{"gpt2_1f1b_4", {"gpt2-tiny", 6, 4, 1.0}, 4}, StagedCase{"gpt2_zb_v", {"gpt2-tiny", 4, 4}, 2, "zb_v"},
        StagedCase{"qwen2_1f1b_3", {"qwen2-tiny", 5, 4, 1.0}, 3},
        StagedCase{"qwen2_zb_h2", {"qwen2-tiny", 4, 6, 0, false, 6}, 3, "zb_h2"},
        StagedCase{"llama_dp2_tp2", {"llama-tiny", 3, 4, 1.0, false, 8}, 2, "1f1b", "balanced", 2, 2},
        StagedCase{"tied_dp2_tp2_zb_v", {"llama-tied", 5, 4, 1.0, false, 8}, 2, "zb_v", "balanced", 2, 2},
        StagedCase{"gpt2_dp2_zb_h1", {"gpt2-tiny", 3, 4, 1.0, false, 8}, 3, "zb_h1", "balanced", 2, 1},
        StagedCase{"qwen2_tp2_interleaved", {"qwen2-tiny", 5, 4, 1.0}, 2, "interleaved:2", "balanced", 1, 2},
        StagedCase{"qwen2_table", {"qwen2-tiny", 6, 2, 1.0}, 2, kThreeNeighbours},
        StagedCase{"llama_table", {"llama-tiny", 4, 2}, 2, kNeighbours},
        StagedCase{"tied_table", {"llama-tied", 5, 2, 1.0, false, 4}, 2, kNeighbours, "balanced", 2, 1},
        StagedCase{"llama_zero3", {"llama-tiny", 4, 4, 1.0, false, 8}, 2, "interleaved:2", "balanced", 2, 1, 3},
        StagedCase{"tied_zero3_tp2", {"llama-tied", 3, 4, 1.0, false, 8}, 2, "zb_h1", "balanced", 2, 2, 3},
        StagedCase{"llama_zero1", {"llama-tiny", 3, 4, 1.0, false, 8}, 2, "1f1b", "balanced", 2, 1, 1},
        StagedCase{"tied_zero2", {"llama-tied", 3, 4, 1.0, false, 8}, 2, "1f1b", "balanced", 2, 1, 2}),
    bowline::test::nameOf);
