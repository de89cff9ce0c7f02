//===- ParallelTrainingTest.cpp - Plans of several ranks train as those of one do
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/Execution/StrategyCase.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "gtest/gtest.h"

using namespace bowline;
using namespace bowline::test;

namespace {

class ParallelTraining : public testing::TestWithParam<StrategyCase> {};

/// Other ways to run the same strategy.
class EquivalentTraining : public ParallelTraining {
protected:
  /// Three steps of both plans give the same bits.
  void expectSameBits(fbs::PlanT &actualPlan, fbs::PlanT &expectedPlan) {
    constexpr size_t kSteps = 3;
    std::unique_ptr<TokenDataset> tokens = randomDataset(GetParam().sizes.vocabulary);
    ASSERT_TRUE(tokens);
    std::vector<StepResult> expected = trainOnRanks(expectedPlan, *tokens, kSteps);
    std::vector<StepResult> actual = trainOnRanks(actualPlan, *tokens, kSteps);
    ASSERT_EQ(expected.size(), kSteps);
    ASSERT_EQ(actual.size(), kSteps);
    for (size_t step = 0; step < kSteps; ++step) {
      EXPECT_EQ(actual[step].loss, expected[step].loss);
      EXPECT_EQ(actual[step].grad_norm, expected[step].grad_norm);
    }
  }
};

class OverlappedTraining : public EquivalentTraining {};
class OverlappedPipelines : public EquivalentTraining {};
class ChunkedTraining : public EquivalentTraining {};

size_t countCollectives(const fbs::PlanT &plan) {
  size_t count = 0;
  for (const auto &program : plan.programs)
    for (const auto &segment : program->segments)
      count += llvm::count_if(segment->commands, [](const auto &command) { return command->body.AsCollective(); });
  return count;
}

} // namespace

TEST_P(ParallelTraining, LossesAndNormsAreThoseOfOneRank) { expectTrainsAsOneRank(GetParam(), 20); }

/// Commands in another order, on several streams and at other places in memory compute the same.
TEST_P(OverlappedTraining, ChangesNoBit) {
  StrategyCase inOrder = GetParam();
  inOrder.overlap = false;
  std::unique_ptr<fbs::PlanT> overlapped = compileStrategy(GetParam()), plain = compileStrategy(inOrder);
  ASSERT_TRUE(overlapped && plain);
  size_t streams = 1;
  for (const auto &program : overlapped->programs)
    streams = std::max(streams, program->streams.size());
  EXPECT_GT(streams, 1u);
  expectSameBits(*overlapped, *plain);
}

/// Gradients that are reduced while the last microbatches are still under way are the same.
TEST_P(OverlappedPipelines, ChangeNoBit) {
  StrategyCase inOrder = GetParam();
  inOrder.overlap = false;
  std::unique_ptr<fbs::PlanT> overlapped = compileStrategy(GetParam()), plain = compileStrategy(inOrder);
  ASSERT_TRUE(overlapped && plain);
  // With level 2 there is one reduction per microbatch, and only reductions over several axes are left for the update.
  bool areInUpdate = GetParam().zero < 2 || !GetParam().zeroAxis.empty();
  size_t early = 0, pipelines = 0;
  for (const auto &program : overlapped->programs) {
    pipelines += program->name == "train_step_program";
    early += llvm::any_of(program->segments,
                          [](const auto &segment) { return llvm::StringRef(segment->name).ends_with("+reductions"); });
  }
  EXPECT_EQ(early, areInUpdate ? pipelines : 0);
  EXPECT_EQ(pipelines, 2u);
  expectSameBits(*overlapped, *plain);
}

/// Products and their collectives in chunks of rows compute the same.
TEST_P(ChunkedTraining, ChangesNoBit) {
  StrategyCase inChunks = GetParam();
  inChunks.overlapChunks = 2;
  std::unique_ptr<fbs::PlanT> chunked = compileStrategy(inChunks), plain = compileStrategy(GetParam());
  ASSERT_TRUE(chunked && plain);
  EXPECT_GT(countCollectives(*chunked), countCollectives(*plain));
  expectSameBits(*chunked, *plain);
}

class RoundedTraining : public ParallelTraining {};

static int64_t keptBytes(const fbs::PlanT &plan) {
  int64_t bytes = 0;
  for (const auto &state : plan.states)
    bytes += static_cast<int64_t>(plan.buffers[state->buffer]->bytes);
  return bytes;
}

/// ZeRO in bf16: gathering rounded shards gives the bits of rounding whole parameters. Where nothing
/// depends on the norm of the gradients, whose squares are added in another order, no bit changes.
TEST_P(RoundedTraining, GathersWhatCopiesWouldBeRoundedTo) {
  constexpr size_t kSteps = 20;
  std::unique_ptr<TokenDataset> tokens = randomDataset(GetParam().sizes.vocabulary);
  StrategyCase copies = GetParam();
  copies.zero = 0;
  std::unique_ptr<fbs::PlanT> plain = compileStrategy(copies), divided = compileStrategy(GetParam());
  ASSERT_TRUE(tokens && plain && divided);
  EXPECT_GT(llvm::count_if(divided->states,
                           [&](const auto &state) {
                             return Has(state->flags, fbs::StateFlag::Mirror) &&
                                    divided->buffers[state->buffer]->dtype == fbs::DType::BF16;
                           }),
            5);
  EXPECT_LT(keptBytes(*divided), keptBytes(*plain));
  std::vector<StepResult> expected = trainOnRanks(*plain, *tokens, kSteps);
  std::vector<StepResult> actual = trainOnRanks(*divided, *tokens, kSteps);
  ASSERT_EQ(expected.size(), kSteps);
  ASSERT_EQ(actual.size(), kSteps);
  for (size_t step = 0; step < kSteps; ++step) {
    EXPECT_EQ(actual[step].loss, expected[step].loss) << "step " << step;
    EXPECT_NEAR(actual[step].grad_norm, expected[step].grad_norm, 1e-6 * expected[step].grad_norm) << "step " << step;
  }
}

/// With level 2 gradients of several microbatches would be added in another order.
static std::vector<StrategyCase> roundedCases() {
  std::vector<StrategyCase> cases;
  auto add = [&](const char *model, const char *mesh, int64_t zero, int64_t microbatches) -> StrategyCase & {
    return cases.emplace_back(StrategyCase{.model = model,
                                           .mesh = mesh,
                                           .microbatches = microbatches,
                                           .zero = zero,
                                           .sizes = {.vocabulary = 23}, // and many parameters that do not divide
                                           .dtype = "bf16",
                                           .clipNorm = 0});
  };
  for (const char *model : {"llama-tiny", "llama-tied", "qwen2-tiny", "gpt2-tiny"}) {
    add(model, "dp=4", 1, 2);
    add(model, "dp=2,tp=2", 2, 1).sequenceParallel = true;
    add(model, "pp=2,dp=2", 1, 4).schedule = "1f1b";
  }
  add("llama-tiny", "fsdp=4", 1, 2).recompute = "full";
  add("llama-tied", "pp=2,dp=2,tp=2", 1, 2).schedule = "zb_h1";
  add("qwen3-tiny", "dp=2,tp=2", 2, 1).sequenceParallel = true;
  add("mistral-tiny", "pp=2,dp=2", 1, 4).schedule = "1f1b";
  return cases;
}

/// Every schedule, layers that do not divide among the stages, and pipelines of ranks that divide tensors, the batch
/// and the optimizer's state.
static std::vector<StrategyCase> pipelineCases() {
  std::vector<StrategyCase> cases;
  auto add = [&](const char *model, const char *mesh, const char *schedule, int64_t layers) -> StrategyCase & {
    return cases.emplace_back(StrategyCase{
        .model = model, .mesh = mesh, .microbatches = 4, .sizes = {.layers = layers}, .schedule = schedule});
  };
  for (const char *model : {"llama-tiny", "llama-tied", "qwen2-tiny", "gpt2-tiny"})
    for (const char *schedule :
         {"gpipe", "1f1b", "interleaved:2", "breadth_first:2", "zb_h1", "zb_h2", "zb_v", "dualpipe_v"})
      add(model, "pp=2", schedule, 5);
  for (const char *model : {"qwen3-tiny", "mistral-tiny"})
    for (const char *schedule : {"1f1b", "zb_h1"})
      add(model, "pp=2,tp=2", schedule, 5).sizes.keyHeads = 2;
  for (const char *model : {"llama-tied", "gpt2-tiny"}) {
    add(model, "pp=4", "1f1b", 7);
    add(model, "pp=4", "interleaved:2", 9).sizes.vocabulary = 23;
    StrategyCase &all = add(model, "pp=2,dp=2,tp=2", "1f1b", 3);
    all.sequenceParallel = true, all.zero = 1, all.sizes.vocabulary = 23;
    StrategyCase &sharded = add(model, "pp=2,dp=2,tp=2", "zb_h1", 3);
    sharded.zero = 2, sharded.sizes.vocabulary = 29, sharded.sizes.intermediate = 21;
    add(model, "pp=2,fsdp=2", "interleaved:2", 4).zero = 3;
    StrategyCase &hybrid = add(model, "pp=2,dp=2,fsdp=2", "zb_v", 5);
    hybrid.microbatches = 2, hybrid.zero = 2, hybrid.zeroAxis = "fsdp";
    add(model, "pp=8", "1f1b", 8);
  }
  return cases;
}

/// Pipelines of two stages whose ranks divide the batch.
static std::vector<StrategyCase> reducingPipelines() {
  std::vector<StrategyCase> cases;
  auto add = [&](const char *mesh, const char *schedule, int64_t zero, int64_t microbatches = 4) -> StrategyCase & {
    return cases.emplace_back(StrategyCase{.model = "llama-tied",
                                           .mesh = mesh,
                                           .microbatches = microbatches,
                                           .zero = zero,
                                           .sizes = {.layers = 5, .vocabulary = 23},
                                           .schedule = schedule});
  };
  for (int64_t zero : {0, 1, 2})
    add("pp=2,dp=2", "1f1b", zero);
  for (const char *schedule : {"gpipe", "interleaved:2", "zb_h1", "zb_v", "dualpipe_v"})
    add("pp=2,dp=2", schedule, schedule[0] == 'z');
  add("pp=2,dp=2", "1f1b", 0, 1);
  add("pp=2,dp=2,tp=2", "1f1b", 1).sequenceParallel = true;
  add("dp=2,pp=2", "interleaved:2", 0).recompute = "full";
  add("pp=2,dp=2,fsdp=2", "zb_h1", 2, 2).zeroAxis = "fsdp";
  add("pp=2,dp=2", "1f1b", 1).dtype = "bf16";
  return cases;
}

static std::vector<StrategyCase> cases(llvm::ArrayRef<const char *> models) {
  std::vector<StrategyCase> cases;
  const ModelSizes grouped = {.keyHeads = 2}, prime = {.vocabulary = 23}, odd = {.vocabulary = 29, .intermediate = 21};
  const ModelSizes single = {.vocabulary = 23, .keyHeads = 1};
  for (const char *model : models) {
    auto add = [&](StrategyCase c) {
      c.model = model;
      cases.push_back(c);
    };
    add({.mesh = "dp=2"});
    add({.mesh = "tp=2", .sizes = prime});
    add({.mesh = "dp=2,tp=2", .microbatches = 2, .sequenceParallel = true, .sizes = prime});
    add({.mesh = "tp=4", .sequenceParallel = true, .sizes = odd});
    add({.mesh = "dp=2,tp=4", .microbatches = 2, .sizes = odd, .recompute = "full"});
    add({.mesh = "dp=2,tp=2", .microbatches = 2, .zero = 1, .sizes = prime});
    add({.mesh = "dp=4", .microbatches = 2, .zero = 2, .sizes = prime});
    add({.mesh = "dp=2,tp=2", .microbatches = 2, .sequenceParallel = true, .zero = 3, .sizes = prime});
    add({.mesh = "dp=2,fsdp=2,tp=2", .sequenceParallel = true, .zero = 3, .sizes = odd, .recompute = "selective"});
    if (!llvm::StringRef(model).starts_with("llama") && model != llvm::StringRef("qwen3-tiny"))
      continue; // whose heads the others have
    add({.mesh = "tp=2", .sizes = grouped});
    add({.mesh = "tp=4", .microbatches = 2, .sequenceParallel = true, .sizes = grouped});
    add({.mesh = "dp=2,tp=4", .microbatches = 2, .sequenceParallel = true, .zero = 2, .sizes = grouped});
    add({.mesh = "tp=4", .sequenceParallel = true, .sizes = single});
    add({.mesh = "dp=8", .zero = 1, .sizes = single});
    add({.mesh = "fsdp=8", .zero = 3, .sizes = single});
  }
  return cases;
}

/// Where there is tensor parallelism, with whole sequences and with parts of them.
static std::vector<StrategyCase> tensorCases() {
  std::vector<StrategyCase> result = cases({"llama-tiny"});
  llvm::erase_if(result, [](const StrategyCase &c) { return c.mesh.find("tp") == std::string::npos; });
  return result;
}

static std::string nameOf(const testing::TestParamInfo<StrategyCase> &info) { return info.param.name(); }

INSTANTIATE_TEST_SUITE_P(Pipelines, ParallelTraining, testing::ValuesIn(pipelineCases()), ::nameOf);
INSTANTIATE_TEST_SUITE_P(Meshes, ParallelTraining,
                         testing::ValuesIn(cases({"llama-tiny", "llama-tied", "qwen2-tiny", "qwen3-tiny",
                                                  "mistral-tiny", "gpt2-tiny"})),
                         ::nameOf);
INSTANTIATE_TEST_SUITE_P(Meshes, ChunkedTraining, testing::ValuesIn(tensorCases()), ::nameOf);
INSTANTIATE_TEST_SUITE_P(Meshes, OverlappedTraining, testing::ValuesIn(cases({"llama-tiny"})), ::nameOf);
INSTANTIATE_TEST_SUITE_P(Schedules, OverlappedPipelines, testing::ValuesIn(reducingPipelines()), ::nameOf);
INSTANTIATE_TEST_SUITE_P(Meshes, RoundedTraining, testing::ValuesIn(roundedCases()), ::nameOf);
