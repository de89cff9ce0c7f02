// A run that is killed while it saves, at any instant, leaves a whole checkpoint.

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <random>
#include <thread>

#include "test/Support/test_seed.h"
#include "test/Unit/Base/temp_directory.h"
#include "test/Unit/Train/checkpoint_test_support.h"

namespace bowline {
namespace {

// Saves forever: `step_of(n)` is the step of the n-th save, whose values are all n.
template <typename StepOf>
[[noreturn]] void SaveForever(const std::string& directory, TestModel& model, int64_t n, StepOf step_of) {
  for (;; ++n) {
    model.Fill(n);
    if (!SaveCheckpoint(directory, {.step = step_of(n), .next_draw = n}, model.Tensors(), "{}").ok()) ::_exit(1);
  }
}

// Kills savers after random times, until enough of them or the time is over; each time the checkpoint must be whole, no
// older than the one before, and the next saver must be able to go on.
template <typename StepOf>
void KillManyTimes(StepOf step_of) {
  const TempDirectory directory;
  TestModel model(50'000);
  model.Fill(1);
  ASSERT_TRUE(SaveCheckpoint(directory.path(), {.step = step_of(1), .next_draw = 1}, model.Tensors(), "{}").ok());
  std::mt19937 random(TestSeed());
  int64_t last = 1;
  for (int kills = 0; kills < 100; ++kills) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) SaveForever(directory.path(), model, last + 1, step_of);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 40'000));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the saver failed";

    const auto checkpoint = Checkpoint::Open(directory.path());
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    TestModel loaded(50'000);
    const absl::Status load = checkpoint->Load(loaded.Tensors());
    ASSERT_TRUE(load.ok()) << load;
    const int64_t n = checkpoint->state().next_draw;
    ASSERT_GE(n, last);
    ASSERT_EQ(checkpoint->state().step, step_of(n));
    TestModel expected(50'000);
    expected.Fill(n);
    ASSERT_EQ(loaded, expected) << "the checkpoint mixes two saves";
    last = n;
  }
  // The next save clears away the files that the killed processes left.
  model.Fill(last + 1);
  ASSERT_TRUE(
      SaveCheckpoint(directory.path(), {.step = step_of(last + 1), .next_draw = last + 1}, model.Tensors(), "{}").ok());
  for (const std::string& name : directory.List()) {
    EXPECT_TRUE(name == "latest" || name.rfind("step-", 0) == 0 || name.rfind(".latest.tmp-", 0) == 0) << name;
  }
}

TEST(CheckpointKillTest, SavingNewSteps) {
  KillManyTimes([](int64_t n) { return n; });
}

TEST(CheckpointKillTest, ReplacingOneStep) {
  KillManyTimes([](int64_t) { return int64_t{20}; });
}

TEST(CheckpointKillTest, AlternatingBetweenTwoSteps) {
  KillManyTimes([](int64_t n) { return n % 2; });
}

}  // namespace
}  // namespace bowline
