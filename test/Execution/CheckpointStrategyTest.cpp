//===- CheckpointStrategyTest.cpp - Checkpoints go from one strategy to another
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Driver/Compile.h"
#include "compiler/Support/NpyFile.h"
#include "compiler/Support/Registration.h"
#include "runtime/train/save_checkpoint.h"
#include "test/Execution/RankHarness.h"
#include "test/Unit/Base/temp_directory.h"
#include "test/Unit/Sharding/ShardedModel.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::test;

namespace {

struct Strategy {
  const char *mesh; // "": one rank
  bool sequenceParallel = false;
  int64_t microbatches = 1;
  int64_t zero = 0;
  const char *zeroAxis = "", *schedule = "";
};

const Strategy kStrategies[] = {{""},
                                {"dp=2"},
                                {"dp=4", false, 2},
                                {"tp=2"},
                                {"dp=2,tp=2", false, 2},
                                {"dp=2,tp=2", true},
                                {"tp=4"},
                                {"dp=2,tp=4", true, 2, 2},
                                {"dp=2", false, 1, 1},
                                {"dp=4", false, 2, 2},
                                {"dp=3", false, 1, 3},
                                {"dp=2,tp=2", true, 2, 3},
                                {"dp=2,fsdp=2", false, 1, 1},
                                {"dp=2,fsdp=2,tp=2", false, 2, 3, "fsdp"},
                                {"pp=2", false, 2, 0, "", "1f1b"},
                                {"pp=2,dp=2", false, 4, 1, "", "zb_h1"},
                                {"pp=2,dp=2,tp=2", true, 4, 2, "", "1f1b"},
                                {"dp=3,pp=2", false, 4, 3, "", "gpipe"}};

std::string describe(const Strategy &s) {
  return "mesh '" + std::string(s.mesh) + "', microbatches " + std::to_string(s.microbatches) + ", zero " +
         std::to_string(s.zero) + (s.sequenceParallel ? ", sequence parallel" : "") +
         (*s.schedule ? std::string(", schedule ") + s.schedule : "");
}

constexpr int64_t kBatch = 24, kSeq = 8, kVocabulary = 23;
constexpr double kTolerance = 1e-4;

/// One model under all strategies.
class CheckpointStrategy : public testing::TestWithParam<const char *> {
protected:
  /// Null after a test failure. Each strategy is compiled once.
  fbs::PlanT *plan(size_t strategy) {
    std::unique_ptr<fbs::PlanT> &plan = plans[strategy];
    if (plan)
      return plan.get();
    const Strategy &s = kStrategies[strategy];
    SCOPED_TRACE(describe(s));
    DialectRegistry registry;
    registerAllDialects(registry);
    MLIRContext context(registry, MLIRContext::Threading::DISABLED);
    context.loadAllAvailableDialects();
    ModelSizes sizes;
    sizes.vocabulary = kVocabulary;
    sizes.keyHeads = StringRef(GetParam()).starts_with("llama") ? 2 : 4;
    OwningOpRef<ModuleOp> module = smallModel(context, GetParam(), sizes, kBatch / s.microbatches, kSeq);
    if (!module)
      return nullptr;
    CompileOptions options;
    options.microbatches = s.microbatches;
    options.lr = 1e-2;
    options.threads = 1;
    options.seed = 5;
    options.mesh = s.mesh;
    options.sequenceParallel = s.sequenceParallel;
    options.zero = s.zero;
    options.zeroAxis = s.zeroAxis;
    options.schedule = s.schedule;
    auto compiled = compileModule(*module, options);
    EXPECT_TRUE(compiled.ok()) << compiled.status();
    if (compiled.ok())
      plan = std::move(compiled->plan);
    return plan.get();
  }

  std::unique_ptr<TokenDataset> dataset() {
    std::string path = directory / "tokens.npy";
    std::mt19937 random(11);
    NpyArray tokens{NpyType::I32, graph::HostTensor({8192})};
    for (double &token : tokens.tensor.data)
      token = static_cast<double>(random() % kVocabulary);
    EXPECT_FALSE(static_cast<bool>(writeNpyFile(path, tokens)));
    auto opened = OpenTokenDataset(path);
    EXPECT_TRUE(opened.ok()) << opened.status();
    return opened.ok() ? std::move(*opened) : nullptr;
  }

  /// The whole tensors of a checkpoint: bytes of its two files.
  std::pair<std::string, std::string> wholeTensors(const std::string &saved) {
    std::string output = saved + "-whole";
    auto checkpoint = Checkpoint::Open(saved);
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
    if (!checkpoint.ok())
      return {};
    absl::Status exported = ExportCheckpoint(*checkpoint, output, /*with_training=*/true);
    EXPECT_TRUE(exported.ok()) << exported;
    return {ReadWholeFile(output + "/model.safetensors"), ReadWholeFile(output + "/optimizer.safetensors")};
  }

  TempDirectory directory;
  std::unique_ptr<fbs::PlanT> plans[std::size(kStrategies)];
  std::mt19937 random{std::random_device{}()};
};

} // namespace

// Each strategy once, in a random order: one saves, the next loads and saves what it loaded.
TEST_P(CheckpointStrategy, EveryTensorIsTheSameUnderTheNextStrategy) {
  std::unique_ptr<TokenDataset> tokens = dataset();
  ASSERT_TRUE(tokens);
  std::vector<size_t> order(std::size(kStrategies));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  for (size_t i = 0; i < order.size(); ++i) {
    size_t next = order[(i + 1) % order.size()];
    SCOPED_TRACE(describe(kStrategies[order[i]]) + " -> " + describe(kStrategies[next]));
    fbs::PlanT *saver = plan(order[i]), *loader = plan(next);
    ASSERT_TRUE(saver && loader);
    std::string saved = directory / ("saved" + std::to_string(i)), again = saved + "-again";
    ASSERT_EQ(trainOnRanks(*saver, *tokens, {.steps = 3, .save = saved}).size(), 3u);
    trainOnRanks(*loader, *tokens, {.steps = 0, .resume = saved, .save = again});
    ASSERT_FALSE(HasFailure());
    auto [parameters, optimizer] = wholeTensors(saved);
    EXPECT_GT(parameters.size(), 1000u);
    EXPECT_GT(optimizer.size(), parameters.size());
    EXPECT_TRUE(wholeTensors(again) == std::make_pair(parameters, optimizer));
  }
}

TEST_P(CheckpointStrategy, ChangingTheStrategyAtStep20GoesOnAsIfItHadNot) {
  constexpr int kPairs = 4, kChange = 20, kSteps = 30;
  std::unique_ptr<TokenDataset> tokens = dataset();
  ASSERT_TRUE(tokens);
  for (int pair = 0; pair < kPairs; ++pair) {
    size_t first = random() % std::size(kStrategies), second = random() % std::size(kStrategies);
    SCOPED_TRACE(describe(kStrategies[first]) + " -> " + describe(kStrategies[second]));
    fbs::PlanT *before = plan(first), *after = plan(second);
    ASSERT_TRUE(before && after);
    std::string saved = directory / ("run" + std::to_string(pair));
    std::vector<StepResult> expected = trainOnRanks(*before, *tokens, kSteps);
    std::vector<StepResult> actual = trainOnRanks(*before, *tokens, {.steps = kChange, .save = saved});
    for (const StepResult &result : trainOnRanks(*after, *tokens, {.steps = kSteps - kChange, .resume = saved}))
      actual.push_back(result);
    ASSERT_EQ(expected.size(), static_cast<size_t>(kSteps));
    ASSERT_EQ(actual.size(), expected.size());
    for (int step = 0; step < kSteps; ++step) {
      EXPECT_NEAR(actual[step].loss, expected[step].loss, kTolerance * expected[step].loss) << "step " << step;
      EXPECT_NEAR(actual[step].grad_norm, expected[step].grad_norm, kTolerance * expected[step].grad_norm)
          << "step " << step;
      EXPECT_EQ(actual[step].lr, expected[step].lr);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, CheckpointStrategy, testing::Values("llama-tiny", "gpt2-tiny"),
                         [](const auto &info) { return info.index == 0 ? "llama" : "gpt2"; });
