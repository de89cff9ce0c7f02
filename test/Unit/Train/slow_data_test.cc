// Ranks whose data come late: later than a rank that does not answer is waited for.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/train/evaluator.h"
#include "runtime/train/train_loop.h"
#include "test/Unit/Train/agreement_fixture.h"
#include "test/Unit/Train/toy_run.h"

namespace bowline {
namespace {

using testing::AsRanks;
using ::testing::Contains;

constexpr auto kTimeout = std::chrono::seconds(2);

// Data on a disk that takes its time for the token `slow`.
class SlowData : public TokenDataset {
 public:
  SlowData(const TokenDataset& data, int64_t slow) : data_(data), slow_(slow) {}

  void Begin() { is_slow_ = true; }

  int64_t size() const override { return data_.size(); }
  int64_t max_possible_id() const override { return data_.max_possible_id(); }
  std::string description() const override { return data_.description(); }
  const std::string& path() const override { return data_.path(); }
  absl::Status Read(int64_t begin, int64_t count, int32_t* out) const override {
    if (is_slow_ && begin <= slow_ && slow_ < begin + count) std::this_thread::sleep_for(kTimeout + kTimeout / 2);
    return data_.Read(begin, count, out);
  }

 private:
  const TokenDataset& data_;
  const int64_t slow_;
  bool is_slow_ = false;
};

struct Notes : TrainObserver {
  std::vector<std::string> list;
  void OnNote(absl::string_view note) override { list.emplace_back(note); }
};

// Runs four steps of 12 tokens and an evaluation on two ranks, of which the second one has slow data.
void ExpectDone(fbs::PlanT plan, int64_t slow_of_training, int64_t slow_of_evaluation) {
  const ToyData data(97, ToyShape().vocabulary, 1);
  Notes notes;
  const auto statuses = AsRanks(
      2,
      [&](Agreement& agreement, RankGroup&) -> absl::Status {
        const bool is_slow = agreement.rank() == 1;
        SlowData train(*data.dataset, is_slow ? slow_of_training : -1);
        SlowData evaluation(*data.dataset, is_slow ? slow_of_evaluation : -1);
        const std::unique_ptr<Session> session = ToySession(plan);
        BOWLINE_ASSIGN_OR_RETURN(Trainer trainer, Trainer::Create(session.get(), &train, DataOrder::kSequential));
        BOWLINE_ASSIGN_OR_RETURN(Evaluator evaluator, Evaluator::Create(session.get(), &evaluation));
        BOWLINE_RETURN_IF_ERROR(trainer.Initialize());
        train.Begin();
        evaluation.Begin();
        if (!is_slow) agreement.SetNotes([&](absl::string_view note) { notes.OnNote(note); });
        TrainObserver silent;
        const std::atomic<bool> stop{false};
        BOWLINE_ASSIGN_OR_RETURN(const bool done,
                                 RunTrainLoop({.steps = 4}, trainer, &evaluator, nullptr, silent, stop, &agreement));
        EXPECT_TRUE(done);
        EXPECT_EQ(trainer.steps_done(), 4);
        return absl::OkStatus();
      },
      kTimeout);
  for (const absl::Status& status : statuses) EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(notes.list, Contains("waiting for rank 1, which is reading data"));
}

TEST(SlowDataTest, ARankWhoseDataOfAStepComeLateIsWaitedFor) {
  ExpectDone(ToyTrainPlan(), /*slow_of_training=*/0, /*slow_of_evaluation=*/-1);
  ExpectDone(ToyTrainPlan(), /*slow_of_training=*/26, /*slow_of_evaluation=*/-1);
}

TEST(SlowDataTest, ARankWhoseDataOfAStepComeLateWhileItComputesIsWaitedFor) {
  fbs::PlanT plan = ToyTrainPlan();
  for (const auto& entry : plan.entries) {
    if (entry->kind == fbs::EntryKind::TrainStep) testing::AllowTwoRuns(plan, *entry);
  }
  ExpectDone(plan, /*slow_of_training=*/26, /*slow_of_evaluation=*/-1);
}

TEST(SlowDataTest, ARankWhoseDataOfAnEvaluationComeLateIsWaitedFor) {
  ExpectDone(ToyTrainPlan(), /*slow_of_training=*/-1, /*slow_of_evaluation=*/50);
}

}  // namespace
}  // namespace bowline
