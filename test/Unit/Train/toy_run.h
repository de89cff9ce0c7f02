#ifndef BOWLINE_TEST_UNIT_TRAIN_TOY_RUN_H_
#define BOWLINE_TEST_UNIT_TRAIN_TOY_RUN_H_

// Runs of the toy model on data in memory.

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/train/trainer.h"
#include "test/Unit/Plan/plan_fixture.h"
#include "test/Unit/Train/token_files.h"
#include "test/Unit/Train/toy_plan.h"

namespace bowline {

// A data set with its file in memory.
struct ToyData {
  ToyData(int64_t count, int64_t vocabulary, uint32_t seed)
      : tokens(RandomTokens(count, vocabulary, seed)), file(LlmcFile(tokens)) {
    auto opened = TokenDatasetFromBytes(AsBytes(file), "toy.bin", {.vocabulary = vocabulary});
    EXPECT_TRUE(opened.ok()) << opened.status();
    dataset = *std::move(opened);
  }
  std::vector<uint16_t> tokens;
  std::string file;
  std::unique_ptr<TokenDataset> dataset;
};

// A new run, its state initialised.
struct ToyRun {
  ToyRun(const ToyShape& shape, const ToyData& data, DataOrder order = DataOrder::kSequential)
      : session(ToySession(ToyTrainPlan(shape))) {
    auto created = Trainer::Create(session.get(), data.dataset.get(), order);
    EXPECT_TRUE(created.ok()) << created.status();
    trainer.emplace(*std::move(created));
    EXPECT_TRUE(trainer->Initialize().ok());
  }
  StepResult Step() {
    const auto result = trainer->Step();
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? *result : StepResult{};
  }
  std::unique_ptr<Session> session;
  std::optional<Trainer> trainer;
};

}  // namespace bowline

#endif  // BOWLINE_TEST_UNIT_TRAIN_TOY_RUN_H_
