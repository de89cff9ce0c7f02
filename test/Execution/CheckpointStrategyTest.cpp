//===- CheckpointStrategyTest.cpp - Checkpoints go from one strategy to another
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/checkpoint/save_checkpoint.h"
#include "test/Execution/StrategyCase.h"
#include "test/Support/test_seed.h"
#include "test/Unit/Base/temp_directory.h"
#include "llvm/ADT/StringRef.h"
#include "gtest/gtest.h"

#include <numeric>

using namespace bowline;
using namespace bowline::test;

namespace {

constexpr int64_t kVocabulary = 23;

/// Strategies, without the settings that all of them share.
const StrategyCase kStrategies[] = {
    {.mesh = ""},
    {.mesh = "dp=2"},
    {.mesh = "dp=4", .microbatches = 2},
    {.mesh = "tp=2"},
    {.mesh = "dp=2,tp=2", .microbatches = 2},
    {.mesh = "dp=2,tp=2", .sequenceParallel = true},
    {.mesh = "tp=4"},
    {.mesh = "dp=2,tp=4", .microbatches = 2, .sequenceParallel = true, .zero = 2},
    {.mesh = "dp=2", .zero = 1},
    {.mesh = "dp=4", .microbatches = 2, .zero = 2},
    {.mesh = "dp=3", .zero = 3},
    {.mesh = "dp=2,tp=2", .microbatches = 2, .sequenceParallel = true, .zero = 3},
    {.mesh = "dp=2,fsdp=2", .zero = 1},
    {.mesh = "dp=2,fsdp=2,tp=2", .microbatches = 2, .zero = 3, .zeroAxis = "fsdp"},
    {.mesh = "pp=2", .microbatches = 2, .schedule = "1f1b"},
    {.mesh = "pp=2,dp=2", .microbatches = 4, .zero = 1, .schedule = "zb_h1"},
    {.mesh = "pp=2,dp=2,tp=2", .microbatches = 4, .sequenceParallel = true, .zero = 2, .schedule = "1f1b"},
    {.mesh = "dp=3,pp=2", .microbatches = 4, .zero = 3, .schedule = "gpipe"}};

struct Model {
  const char *name, *dtype = "f32";
};

void PrintTo(const Model &model, std::ostream *os) { *os << model.name << " in " << model.dtype; }

/// One model under all strategies.
class CheckpointStrategy : public testing::TestWithParam<Model> {
protected:
  CheckpointStrategy() {
    for (StrategyCase &strategy : strategies) {
      strategy.model = GetParam().name;
      strategy.dtype = GetParam().dtype;
      strategy.sizes = {.vocabulary = kVocabulary,
                        .keyHeads = llvm::StringRef(GetParam().name).starts_with("llama") ? 2 : 4};
      strategy.batch = 24;
      strategy.lr = 1e-2;
    }
  }

  /// Null after a test failure. Each strategy is compiled once.
  fbs::PlanT *plan(size_t strategy) {
    if (!plans[strategy])
      plans[strategy] = compileStrategy(strategies[strategy]);
    return plans[strategy].get();
  }

  std::string describe(size_t from, size_t to) { return strategies[from].text() + " -> " + strategies[to].text(); }

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
  std::vector<StrategyCase> strategies{std::begin(kStrategies), std::end(kStrategies)};
  std::unique_ptr<fbs::PlanT> plans[std::size(kStrategies)];
  std::unique_ptr<TokenDataset> tokens = randomDataset(kVocabulary);
  std::mt19937 random{TestSeed()};
};

} // namespace

// Each strategy once, in a random order: each one loads the checkpoint of the one before, and saves it again.
TEST_P(CheckpointStrategy, EveryTensorIsTheSameUnderTheNextStrategy) {
  ASSERT_TRUE(tokens);
  std::vector<size_t> order(std::size(kStrategies));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  for (size_t i = 0; i < order.size(); ++i) {
    size_t next = order[(i + 1) % order.size()];
    SCOPED_TRACE(describe(order[i], next));
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

class ResumedRun : public CheckpointStrategy {};

// States that no checkpoint holds, such as rounded copies of parameters, resume with the same bits.
TEST_P(ResumedRun, ChangesNoBit) {
  constexpr size_t kSaved = 3, kSteps = 6;
  ASSERT_TRUE(tokens);
  for (size_t strategy = 0; strategy < std::size(kStrategies); ++strategy) {
    SCOPED_TRACE(strategies[strategy].text());
    fbs::PlanT *plan = this->plan(strategy);
    ASSERT_TRUE(plan);
    std::string saved = directory / ("resumed" + std::to_string(strategy));
    std::vector<StepResult> expected = trainOnRanks(*plan, *tokens, kSteps);
    std::vector<StepResult> actual = trainOnRanks(*plan, *tokens, {.steps = kSaved, .save = saved});
    for (const StepResult &result : trainOnRanks(*plan, *tokens, {.steps = kSteps - kSaved, .resume = saved}))
      actual.push_back(result);
    ASSERT_EQ(expected.size(), kSteps);
    ASSERT_EQ(actual.size(), kSteps);
    for (size_t step = 0; step < kSteps; ++step) {
      EXPECT_EQ(actual[step].loss, expected[step].loss) << "step " << step;
      EXPECT_EQ(actual[step].grad_norm, expected[step].grad_norm) << "step " << step;
    }
  }
}

// In bf16 every strategy rounds sums of its own.
class ChangedStrategy : public CheckpointStrategy {};

TEST_P(ChangedStrategy, ChangingTheStrategyAtStep20GoesOnAsIfItHadNot) {
  constexpr int kPairs = 4, kChange = 20, kSteps = 30;
  ASSERT_TRUE(tokens);
  for (int pair = 0; pair < kPairs; ++pair) {
    size_t first = random() % std::size(kStrategies), second = random() % std::size(kStrategies);
    SCOPED_TRACE(describe(first, second));
    fbs::PlanT *before = plan(first), *after = plan(second);
    ASSERT_TRUE(before && after);
    std::string saved = directory / ("run" + std::to_string(pair));
    std::vector<StepResult> expected = trainOnRanks(*before, *tokens, kSteps);
    std::vector<StepResult> actual = trainOnRanks(*before, *tokens, {.steps = kChange, .save = saved});
    for (const StepResult &result : trainOnRanks(*after, *tokens, {.steps = kSteps - kChange, .resume = saved}))
      actual.push_back(result);
    ASSERT_EQ(expected.size(), static_cast<size_t>(kSteps));
    expectSameTraining(actual, expected);
  }
}

static std::string modelName(const testing::TestParamInfo<Model> &info) {
  return llvm::StringRef(info.param.name).split('-').first.str() + "_" + info.param.dtype;
}

INSTANTIATE_TEST_SUITE_P(Models, CheckpointStrategy,
                         testing::Values(Model{"llama-tiny"}, Model{"gpt2-tiny"}, Model{"llama-tied", "bf16"}),
                         modelName);
INSTANTIATE_TEST_SUITE_P(Models, ResumedRun, testing::Values(Model{"llama-tied", "bf16"}), modelName);
INSTANTIATE_TEST_SUITE_P(Models, ChangedStrategy, testing::Values(Model{"llama-tiny"}, Model{"gpt2-tiny"}), modelName);
