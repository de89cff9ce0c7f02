//===- ParallelTrainingTest.cpp - Plans of several ranks train as those of one do
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Driver/Compile.h"
#include "compiler/Support/NpyFile.h"
#include "compiler/Support/Registration.h"
#include "test/Execution/RankHarness.h"
#include "test/Unit/Sharding/ShardedModel.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::test;

namespace {

struct Case {
  std::string model, mesh;
  int64_t microbatches = 1;
  bool sequenceParallel = false;
  int64_t zero = 0;
  ModelSizes sizes;
  std::string recompute = "none", zeroAxis, schedule;

  /// "llama_tiny_dp2_tp2_m2_sp_zero1_v23"
  std::string name() const {
    std::string name = model + "_" + mesh + "_m" + std::to_string(microbatches);
    if (sequenceParallel)
      name += "_sp";
    if (zero > 0)
      name += "_zero" + std::to_string(zero) + zeroAxis;
    ModelSizes usual;
    if (sizes.vocabulary != usual.vocabulary)
      name += "_v" + std::to_string(sizes.vocabulary);
    if (sizes.intermediate != usual.intermediate)
      name += "_i" + std::to_string(sizes.intermediate);
    if (sizes.keyHeads != usual.keyHeads)
      name += "_k" + std::to_string(sizes.keyHeads);
    if (sizes.layers != usual.layers)
      name += "_l" + std::to_string(sizes.layers);
    if (recompute != "none")
      name += "_" + recompute;
    if (!schedule.empty())
      name += "_" + schedule;
    llvm::erase_if(name, [](char c) { return c == '='; });
    std::replace_if(name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
    return name;
  }
};

void PrintTo(const Case &c, std::ostream *os) { *os << c.name(); }

constexpr int64_t kBatch = 8, kSeq = 8;
constexpr int kSteps = 20;
constexpr double kTolerance = 1e-4;

class ParallelTraining : public testing::TestWithParam<Case> {
protected:
  std::unique_ptr<fbs::PlanT> compile(bool whole, bool overlaps = true, int64_t chunks = 1) {
    const Case &c = GetParam();
    DialectRegistry registry;
    registerAllDialects(registry);
    MLIRContext context(registry, MLIRContext::Threading::DISABLED);
    context.loadAllAvailableDialects();
    OwningOpRef<ModuleOp> module = smallModel(context, c.model, c.sizes, kBatch / c.microbatches, kSeq);
    if (!module)
      return nullptr;
    CompileOptions options;
    options.microbatches = c.microbatches;
    options.lr = 1e-3;
    options.threads = 1;
    options.seed = 5;
    options.recompute = c.recompute;
    if (!whole) {
      options.mesh = c.mesh;
      options.sequenceParallel = c.sequenceParallel;
      options.zero = c.zero;
      options.zeroAxis = c.zeroAxis;
      options.overlapChunks = chunks;
      options.bucketBytes = 4096; // several, though the model is small: so they overlap
      if (!overlaps)
        options.disabledSteps = {"overlap-commands"};
      options.schedule = c.schedule;
    }
    auto compiled = compileModule(*module, options);
    EXPECT_TRUE(compiled.ok()) << compiled.status();
    return compiled.ok() ? std::move(compiled->plan) : nullptr;
  }

  /// Random tokens of the vocabulary.
  std::unique_ptr<TokenDataset> dataset() {
    std::string path = testing::TempDir() + "/parallel_training_" + std::to_string(getpid()) + "_" +
                       std::to_string(GetParam().sizes.vocabulary) + ".npy";
    std::mt19937 random(11);
    NpyArray tokens{NpyType::I32, graph::HostTensor({4096})};
    for (double &token : tokens.tensor.data)
      token = static_cast<double>(random() % GetParam().sizes.vocabulary);
    EXPECT_FALSE(static_cast<bool>(writeNpyFile(path, tokens)));
    auto opened = OpenTokenDataset(path);
    EXPECT_TRUE(opened.ok()) << opened.status();
    return opened.ok() ? std::move(*opened) : nullptr;
  }
};

} // namespace

TEST_P(ParallelTraining, LossesAndNormsAreThoseOfOneRank) {
  std::unique_ptr<TokenDataset> tokens = dataset();
  std::unique_ptr<fbs::PlanT> whole = compile(/*whole=*/true), parallel = compile(/*whole=*/false);
  ASSERT_TRUE(tokens && whole && parallel);
  std::vector<StepResult> expected = trainOnRanks(*whole, *tokens, kSteps);
  std::vector<StepResult> actual = trainOnRanks(*parallel, *tokens, kSteps);
  ASSERT_EQ(expected.size(), static_cast<size_t>(kSteps));
  ASSERT_EQ(actual.size(), expected.size());
  for (int step = 0; step < kSteps; ++step) {
    EXPECT_NEAR(actual[step].loss, expected[step].loss, kTolerance * expected[step].loss) << "step " << step;
    EXPECT_NEAR(actual[step].grad_norm, expected[step].grad_norm, kTolerance * expected[step].grad_norm)
        << "step " << step;
    EXPECT_EQ(actual[step].lr, expected[step].lr);
  }
}

class OverlappedTraining : public ParallelTraining {};

/// Commands in another order, on several streams and at other places in memory compute the same.
TEST_P(OverlappedTraining, ChangesNoBit) {
  std::unique_ptr<TokenDataset> tokens = dataset();
  std::unique_ptr<fbs::PlanT> overlapped = compile(/*whole=*/false), plain = compile(/*whole=*/false, false);
  ASSERT_TRUE(tokens && overlapped && plain);
  size_t streams = 1;
  for (const auto &program : overlapped->programs)
    streams = std::max(streams, program->streams.size());
  EXPECT_GT(streams, 1u);
  std::vector<StepResult> expected = trainOnRanks(*plain, *tokens, 3), actual = trainOnRanks(*overlapped, *tokens, 3);
  ASSERT_EQ(expected.size(), 3u);
  ASSERT_EQ(actual.size(), expected.size());
  for (int step = 0; step < 3; ++step) {
    EXPECT_EQ(actual[step].loss, expected[step].loss);
    EXPECT_EQ(actual[step].grad_norm, expected[step].grad_norm);
  }
}

class ChunkedTraining : public ParallelTraining {};

static size_t countCollectives(const fbs::PlanT &plan) {
  size_t count = 0;
  for (const auto &program : plan.programs)
    for (const auto &segment : program->segments)
      count += llvm::count_if(segment->commands, [](const auto &command) { return command->body.AsCollective(); });
  return count;
}

/// Products and their collectives in chunks of rows compute the same.
TEST_P(ChunkedTraining, ChangesNoBit) {
  std::unique_ptr<TokenDataset> tokens = dataset();
  std::unique_ptr<fbs::PlanT> chunked = compile(/*whole=*/false, /*overlaps=*/true, /*chunks=*/2);
  std::unique_ptr<fbs::PlanT> plain = compile(/*whole=*/false);
  ASSERT_TRUE(tokens && chunked && plain);
  EXPECT_GT(countCollectives(*chunked), countCollectives(*plain));
  std::vector<StepResult> expected = trainOnRanks(*plain, *tokens, 3), actual = trainOnRanks(*chunked, *tokens, 3);
  ASSERT_EQ(expected.size(), 3u);
  ASSERT_EQ(actual.size(), expected.size());
  for (int step = 0; step < 3; ++step) {
    EXPECT_EQ(actual[step].loss, expected[step].loss);
    EXPECT_EQ(actual[step].grad_norm, expected[step].grad_norm);
  }
}

/// Every schedule, layers that do not divide among the stages, and pipelines of ranks that divide tensors, the batch
/// and the optimizer's state.
static std::vector<Case> pipelineCases() {
  std::vector<Case> cases;
  auto add = [&](const char *model, const char *mesh, const char *schedule, int64_t layers) -> Case & {
    Case &c = cases.emplace_back(Case{model, mesh, 4, false, 0, {}});
    c.schedule = schedule;
    c.sizes.layers = layers;
    return c;
  };
  for (const char *model : {"llama-tiny", "llama-tied", "qwen2-tiny", "gpt2-tiny"})
    for (const char *schedule :
         {"gpipe", "1f1b", "interleaved:2", "breadth_first:2", "zb_h1", "zb_h2", "zb_v", "dualpipe_v"})
      add(model, "pp=2", schedule, 5);
  for (const char *model : {"llama-tied", "gpt2-tiny"}) {
    add(model, "pp=4", "1f1b", 7);
    add(model, "pp=4", "interleaved:2", 9).sizes.vocabulary = 23;
    Case &all = add(model, "pp=2,dp=2,tp=2", "1f1b", 3);
    all.sequenceParallel = true, all.zero = 1, all.sizes.vocabulary = 23;
    Case &sharded = add(model, "pp=2,dp=2,tp=2", "zb_h1", 3);
    sharded.zero = 2, sharded.sizes.vocabulary = 29, sharded.sizes.intermediate = 21;
    add(model, "pp=2,fsdp=2", "interleaved:2", 4).zero = 3;
    Case &hybrid = add(model, "pp=2,dp=2,fsdp=2", "zb_v", 5);
    hybrid.microbatches = 2, hybrid.zero = 2, hybrid.zeroAxis = "fsdp";
    add(model, "pp=8", "1f1b", 8);
  }
  return cases;
}

static std::vector<Case> cases(llvm::ArrayRef<const char *> models) {
  std::vector<Case> cases;
  ModelSizes grouped, prime, odd;
  grouped.keyHeads = 2;
  prime.vocabulary = 23;
  odd.vocabulary = 29, odd.intermediate = 21;
  for (const char *model : models) {
    cases.push_back({model, "dp=2"});
    cases.push_back({model, "tp=2", 1, false, 0, prime});
    cases.push_back({model, "dp=2,tp=2", 2, true, 0, prime});
    cases.push_back({model, "tp=4", 1, true, 0, odd});
    cases.push_back({model, "dp=2,tp=4", 2, false, 0, odd, "full"});
    for (int64_t zero : {1, 2, 3})
      cases.push_back({model, zero == 2 ? "dp=4" : "dp=2,tp=2", 2, zero == 3, zero, prime});
    cases.push_back({model, "dp=2,fsdp=2,tp=2", 1, true, 3, odd, "selective"});
  }
  for (const char *model : models) {
    if (!llvm::StringRef(model).starts_with("llama"))
      continue; // whose heads the others have
    cases.push_back({model, "tp=2", 1, false, 0, grouped});
    cases.push_back({model, "tp=4", 2, true, 0, grouped});
    cases.push_back({model, "dp=2,tp=4", 2, true, 2, grouped});
    ModelSizes single = prime;
    single.keyHeads = 1;
    cases.push_back({model, "tp=4", 1, true, 0, single});
    cases.push_back({model, "dp=8", 1, false, 1, single});
    cases.push_back({model, "fsdp=8", 1, false, 3, single});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Pipelines, ParallelTraining, testing::ValuesIn(pipelineCases()),
                         [](const auto &info) { return info.param.name(); });
INSTANTIATE_TEST_SUITE_P(Meshes, ParallelTraining,
                         testing::ValuesIn(cases({"llama-tiny", "llama-tied", "qwen2-tiny", "gpt2-tiny"})),
                         [](const auto &info) { return info.param.name(); });
/// Where there is tensor parallelism, with whole sequences and with parts of them.
static std::vector<Case> tensorCases() {
  std::vector<Case> result = cases({"llama-tiny"});
  llvm::erase_if(result, [](const Case &c) { return c.mesh.find("tp") == std::string::npos; });
  return result;
}

INSTANTIATE_TEST_SUITE_P(Meshes, ChunkedTraining, testing::ValuesIn(tensorCases()),
                         [](const auto &info) { return info.param.name(); });
INSTANTIATE_TEST_SUITE_P(Meshes, OverlappedTraining, testing::ValuesIn(cases({"llama-tiny"})),
                         [](const auto &info) { return info.param.name(); });
