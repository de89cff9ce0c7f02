// The order of steps, saves and evaluations, and the files that remain when one of them fails.

#include "runtime/train/train_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <limits>

#include "runtime/train/evaluator.h"
#include "runtime/train/metrics_log.h"
#include "runtime/train/tensors/non_finite.h"
#include "test/Unit/Base/temp_directory.h"
#include "test/Unit/Runtime/session_tensors.h"
#include "test/Unit/Train/toy_run.h"

namespace bowline {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Records the reports of the loop.
struct Events : TrainObserver {
  std::vector<std::string> list;
  std::atomic<bool> stop{false};
  int64_t stop_at = -1, stop_at_save = -1;
  std::vector<std::string> notes;
  void OnStep(int64_t step, const StepResult&, double) override {
    list.push_back(absl::StrCat("step ", step));
    if (step == stop_at) stop = true;
  }
  void OnEvaluation(int64_t step, double) override { list.push_back(absl::StrCat("eval ", step)); }
  void OnSave(int64_t step, const std::string&) override {
    list.push_back(absl::StrCat("save ", step));
    if (step == stop_at_save) stop = true;
  }
  void OnNote(absl::string_view note) override { notes.emplace_back(note); }
};

// A data set whose token `place` is outside of the vocabulary.
std::unique_ptr<TokenDataset> DatasetWithBadToken(ToyData& data, size_t place, int64_t vocabulary) {
  data.tokens[place] = static_cast<uint16_t>(vocabulary);
  data.file = LlmcFile(data.tokens);
  auto opened = TokenDatasetFromBytes(AsBytes(data.file), "bad.bin", {.vocabulary = vocabulary});
  EXPECT_TRUE(opened.ok()) << opened.status();
  return *std::move(opened);
}

TEST(TrainLoopTest, DoesEverythingInOrderAndKeepsTheLatestCheckpoints) {
  const ToyShape shape;
  const ToyData data(50, shape.vocabulary, 1);
  const TempDirectory directory;
  ToyRun run(shape, data);
  auto evaluator = Evaluator::Create(run.session.get(), data.dataset.get(), 1);
  ASSERT_TRUE(evaluator.ok());
  Events events;
  TrainLoopOptions options = {
      .steps = 5, .eval_every = 2, .save_directory = directory.path(), .save_every = 2, .keep_checkpoints = 2};
  ASSERT_EQ(RunTrainLoop(options, *run.trainer, &*evaluator, nullptr, events, events.stop).status(), absl::OkStatus());
  EXPECT_THAT(events.list, ElementsAre("step 1", "step 2", "save 2", "eval 2", "step 3", "step 4", "save 4", "eval 4",
                                       "step 5", "save 5"));
  EXPECT_THAT(directory.List(), ElementsAre("latest", "step-00000004", "step-00000005"));

  // Nothing left to do; then a stop in between, which saves; then the rest, with one evaluation at the end.
  events.list.clear();
  ASSERT_EQ(RunTrainLoop(options, *run.trainer, &*evaluator, nullptr, events, events.stop).status(), absl::OkStatus());
  EXPECT_THAT(events.list, ElementsAre());
  options = {.steps = 9, .save_directory = directory.path(), .begin = ""};
  events.stop_at = 7;
  ASSERT_EQ(RunTrainLoop(options, *run.trainer, &*evaluator, nullptr, events, events.stop).status(), absl::OkStatus());
  EXPECT_THAT(events.list, ElementsAre("step 6", "step 7", "save 7"));
  events.list.clear();
  events.stop = false;
  ASSERT_EQ(RunTrainLoop(options, *run.trainer, &*evaluator, nullptr, events, events.stop).status(), absl::OkStatus());
  EXPECT_THAT(events.list, ElementsAre("step 8", "step 9", "save 9", "eval 9"));
}

TEST(TrainLoopTest, ALossThatIsNoNumberStopsTheRunWithoutSaving) {
  const ToyShape shape = {.lr = 1e30};
  const ToyData data(50, shape.vocabulary, 1);
  const TempDirectory directory;
  for (bool allow : {false, true}) {
    ToyRun run(shape, data);
    Events events;
    TrainLoopOptions options = {.steps = 8, .save_directory = directory.path(), .allow_non_finite = allow};
    const absl::Status status = RunTrainLoop(options, *run.trainer, nullptr, nullptr, events, events.stop).status();
    if (allow) {
      EXPECT_EQ(status, absl::OkStatus());
      EXPECT_EQ(run.trainer->steps_done(), 8);
    } else {
      EXPECT_EQ(ExitCode(status), kNotFiniteExitCode);
      EXPECT_LT(run.trainer->steps_done(), 8);
      EXPECT_THAT(std::string(status.message()),
                  AllOf(HasSubstr(absl::StrCat("step ", run.trainer->steps_done(), ": the loss is ")),
                        HasSubstr("--allow-non-finite")));
      EXPECT_THAT(directory.List(), ElementsAre());
    }
  }
}

// Each fails after step 2, and steps that are not saved by then are saved before the error ends the run.
TEST(TrainLoopTest, WhatFailsBesideTheStepsCostsNone) {
  const ToyShape shape;
  const ToyData data(97, shape.vocabulary, 1);
  ToyData damaged(97, shape.vocabulary, 1);
  const auto bad_evaluation = DatasetWithBadToken(damaged, 40, shape.vocabulary);
  // An evaluation that reads the token in its last batch.
  for (const int64_t save_every : {0, 2}) {
    const TempDirectory directory;
    ToyRun run(shape, data);
    auto evaluator = Evaluator::Create(run.session.get(), bad_evaluation.get());
    ASSERT_TRUE(evaluator.ok()) << evaluator.status();
    Events events;
    const TrainLoopOptions options = {
        .steps = 5, .eval_every = 2, .save_directory = directory.path(), .save_every = save_every};
    const absl::Status status = RunTrainLoop(options, *run.trainer, &*evaluator, nullptr, events, events.stop).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("evaluation after step 2: "), HasSubstr("'bad.bin'")));
    EXPECT_THAT(events.list, ElementsAre("step 1", "step 2", "save 2"));
    EXPECT_EQ(Checkpoint::Open(directory.path())->state().step, 2);
  }
  // Data of the next step: step 3 draws tokens 24 to 36.
  {
    ToyData next(97, shape.vocabulary, 1);
    next.dataset = DatasetWithBadToken(next, 30, shape.vocabulary);
    const TempDirectory directory;
    ToyRun run(shape, next);
    Events events;
    const TrainLoopOptions options = {.steps = 5, .save_directory = directory.path()};
    const absl::Status status = RunTrainLoop(options, *run.trainer, nullptr, nullptr, events, events.stop).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("step 3: "), HasSubstr("'bad.bin'")));
    EXPECT_THAT(events.list, ElementsAre("step 1", "step 2", "save 2"));
  }
  // Metrics that the disk does not take.
  {
    auto metrics = MetricsLog::Create("/dev/full", "r");
    ASSERT_TRUE(metrics.ok()) << metrics.status();
    const TempDirectory directory;
    ToyRun run(shape, data);
    Events events;
    const TrainLoopOptions options = {.steps = 5, .save_directory = directory.path()};
    const absl::Status status = RunTrainLoop(options, *run.trainer, nullptr, &*metrics, events, events.stop).status();
    EXPECT_THAT(std::string(status.message()), HasSubstr("/dev/full"));
    EXPECT_THAT(events.list, ElementsAre("step 1", "save 1"));
  }
}

TEST(TrainLoopTest, AStopCutsAnEvaluationShortWhichAResumedRunBeginsWith) {
  const ToyShape shape;
  const ToyData data(97, shape.vocabulary, 1);
  const TempDirectory directory;
  ToyRun run(shape, data);
  auto evaluator = Evaluator::Create(run.session.get(), data.dataset.get());
  ASSERT_TRUE(evaluator.ok());
  Events events;
  events.stop_at_save = 4;
  TrainLoopOptions options = {.steps = 4, .save_directory = directory.path()};
  const auto stopped = RunTrainLoop(options, *run.trainer, &*evaluator, nullptr, events, events.stop);
  ASSERT_TRUE(stopped.ok()) << stopped.status();
  EXPECT_FALSE(*stopped);
  EXPECT_THAT(events.list, ElementsAre("step 1", "step 2", "step 3", "step 4", "save 4"));
  Events more;
  options.begin_with_evaluation = true;
  const auto done = RunTrainLoop(options, *run.trainer, &*evaluator, nullptr, more, more.stop);
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_TRUE(*done);
  EXPECT_THAT(more.list, ElementsAre("eval 4"));
}

// The step before it is saved, whether that was due or not: its states are finite.
TEST(TrainLoopTest, AnEvaluationThatIsNoNumberIsSavedBeforeAndAnError) {
  const ToyShape shape;
  const ToyData data(97, shape.vocabulary, 1);
  for (const auto& [allow, save_every] : {std::pair{false, 0}, {false, 2}, {true, 0}}) {
    const TempDirectory directory;
    ToyRun run(shape, data);
    auto evaluator = Evaluator::Create(run.session.get(), data.dataset.get());
    ASSERT_TRUE(evaluator.ok());
    struct Enlarging : Events {
      Session* session = nullptr;
      void OnStep(int64_t step, const StepResult& result, double rate) override {
        Events::OnStep(step, result, rate);
        // Finite weights whose product is not.
        for (const char* key : {kToyEmbedKey, kToyHeadKey}) {
          std::vector<float> values = testing::ReadTensor<float>(*session, session->State(key));
          for (float& value : values) value = step == 2 ? 1e30f : value;
          ASSERT_TRUE(session->WriteAll<float>(*session->State(key), values).ok());
        }
      }
    } events;
    events.session = run.session.get();
    const TrainLoopOptions options = {.steps = allow ? 2 : 5,
                                      .eval_every = 2,
                                      .save_directory = directory.path(),
                                      .save_every = save_every,
                                      .allow_non_finite = allow};
    const auto done = RunTrainLoop(options, *run.trainer, &*evaluator, nullptr, events, events.stop);
    EXPECT_EQ(done.ok(), allow);
    EXPECT_EQ(Checkpoint::Open(directory.path())->state().step, 2);
    if (allow || save_every > 0) {
      EXPECT_THAT(events.list, ElementsAre("step 1", "step 2", "save 2", "eval 2"));
    } else {
      EXPECT_THAT(events.list, ElementsAre("step 1", "step 2", "eval 2", "save 2"));
    }
    if (allow) continue;
    EXPECT_TRUE(IsNotFinite(done.status())) << done.status();
    EXPECT_THAT(std::string(done.status().message()), HasSubstr("evaluation after step 2: the loss is "));
  }
}

TEST(TrainLoopTest, StatesThatAreNotFiniteAreNotSaved) {
  const ToyShape shape;
  const ToyData data(97, shape.vocabulary, 1);
  for (const bool in_background : {false, true}) {
    for (const bool allow : {false, true}) {
      const TempDirectory directory;
      ToyRun run(shape, data);
      struct Poisoning : Events {
        Session* session = nullptr;
        void OnStep(int64_t step, const StepResult& result, double rate) override {
          Events::OnStep(step, result, rate);
          if (step != 3) return;
          // A row of the embedding that no token of the data uses keeps it.
          std::vector<float> values = testing::ReadTensor<float>(*session, session->State(kToyEmbedKey));
          values[6 * 5 + 2] = std::numeric_limits<float>::quiet_NaN();
          ASSERT_TRUE(session->WriteAll<float>(*session->State(kToyEmbedKey), values).ok());
        }
      } events;
      events.session = run.session.get();
      const TrainLoopOptions options = {.steps = 4,
                                        .save_directory = directory.path(),
                                        .save_every = 1,
                                        .saves_in_background = in_background,
                                        .allow_non_finite = allow};
      const auto done = RunTrainLoop(options, *run.trainer, nullptr, nullptr, events, events.stop);
      EXPECT_EQ(done.ok(), allow);
      if (allow) {
        EXPECT_THAT(events.notes, ::testing::Contains(HasSubstr(
                                      "step 3: the parameter 'transformer.embed.weight' is not finite from element "
                                      "[6, 2] on; saved all the same")));
        EXPECT_EQ(Checkpoint::Open(directory.path())->state().step, 4);
        continue;
      }
      EXPECT_TRUE(IsNotFinite(done.status())) << done.status();
      EXPECT_THAT(std::string(done.status().message()),
                  AllOf(HasSubstr("checkpoint of step 3 was not saved: the parameter 'transformer.embed.weight' is not "
                                  "finite from element [6, 2] on; it became so after step 2"),
                        HasSubstr("--allow-non-finite")));
      EXPECT_EQ(Checkpoint::Open(directory.path())->state().step, 2);
      EXPECT_THAT(directory.List(), ElementsAre("latest", "step-00000001", "step-00000002"));
    }
  }
}

TEST(TrainLoopTest, SavesInTheBackgroundAreThoseOfTheirStep) {
  const ToyShape shape;
  const ToyData data(97, shape.vocabulary, 1);
  const TempDirectory plain, background;
  for (const bool in_background : {false, true}) {
    const TempDirectory& directory = in_background ? background : plain;
    ToyRun run(shape, data);
    Events events;
    const TrainLoopOptions options = {
        .steps = 7, .save_directory = directory.path(), .save_every = 2, .saves_in_background = in_background};
    ASSERT_TRUE(RunTrainLoop(options, *run.trainer, nullptr, nullptr, events, events.stop).ok());
    std::erase_if(events.list, [](const std::string& event) { return event.starts_with("step"); });
    EXPECT_THAT(events.list, ElementsAre("save 2", "save 4", "save 6", "save 7"));
    EXPECT_THAT(events.notes, ::testing::IsEmpty());
  }
  for (const char* step : {"step-00000002", "step-00000004", "step-00000006", "step-00000007"}) {
    for (const char* file : {"model.safetensors", "optimizer.safetensors", "trainer_state.json"}) {
      const std::string name = absl::StrCat(step, "/", file);
      EXPECT_EQ(ReadWholeFile(plain / name), ReadWholeFile(background / name)) << name;
    }
  }
}

// As on a directory that belongs to somebody else. A test of root acts for a user.
TEST(TrainLoopTest, AnOldCheckpointThatCannotBeDeletedIsANote) {
  constexpr uid_t kNobody = 65534;
  const ToyShape shape;
  const ToyData data(97, shape.vocabulary, 1);
  const TempDirectory directory;
  ToyRun run(shape, data);
  Events events;
  TrainLoopOptions options = {.steps = 2, .save_directory = directory.path(), .save_every = 1};
  ASSERT_TRUE(RunTrainLoop(options, *run.trainer, nullptr, nullptr, events, events.stop).ok());
  const std::string old = directory / "step-00000001";
  ASSERT_EQ(::chmod(old.c_str(), 0555), 0);
  const bool root = ::geteuid() == 0;
  if (root) {
    for (const std::string& path : {directory.path(), directory / "latest", old, directory / "step-00000002"}) {
      ASSERT_EQ(::chown(path.c_str(), kNobody, kNobody), 0);
    }
    ASSERT_EQ(::seteuid(kNobody), 0);
  }
  options = {.steps = 4, .save_directory = directory.path(), .save_every = 1, .keep_checkpoints = 1};
  const auto done = RunTrainLoop(options, *run.trainer, nullptr, nullptr, events, events.stop);
  if (root) ASSERT_EQ(::seteuid(0), 0);
  EXPECT_TRUE(done.ok()) << done.status();
  EXPECT_THAT(events.notes, ::testing::Contains(HasSubstr("of the old checkpoint")));
  EXPECT_EQ(Checkpoint::Open(directory.path())->state().step, 4);
  // The others went all the same.
  EXPECT_FALSE(std::filesystem::exists(directory / "step-00000002"));
  EXPECT_FALSE(std::filesystem::exists(directory / "step-00000003"));
}

TEST(NonFiniteTest, FindsTheFirstOfAnyTypeAtAnyPlace) {
  const auto find = [](ElementType type, auto fill, auto bad, size_t count, size_t at) {
    std::vector<decltype(fill)> values(count, fill);
    if (at < count) values[at] = bad;
    return FirstNonFinite(type, {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(fill)});
  };
  for (const size_t count : {size_t{0}, size_t{1}, size_t{7}, size_t{4096}, size_t{4097}, size_t{10'001}}) {
    for (const size_t at : {size_t{0}, size_t{6}, size_t{4095}, size_t{4096}, size_t{10'000}, count}) {
      const std::optional<size_t> expected = at < count ? std::optional<size_t>(at) : std::nullopt;
      // The largest finite number, beside infinities and NaN of either sign.
      for (const uint32_t bad : {0x7f800000u, 0xff800000u, 0x7fc00000u, 0x7f800001u}) {
        EXPECT_EQ(find(ElementType::kF32, 0xff7fffffu, bad, count, at), expected);
        EXPECT_EQ(find(ElementType::kBF16, uint16_t{0x7f7f}, static_cast<uint16_t>(bad >> 16 | (bad & 1)), count, at),
                  expected);
      }
      for (const uint16_t bad : {0x7c00, 0xfc00, 0x7c01, 0xfe00}) {
        EXPECT_EQ(find(ElementType::kF16, uint16_t{0x7bff}, bad, count, at), expected);
      }
      for (const double bad : {HUGE_VAL, -HUGE_VAL, std::nan("")})
        EXPECT_EQ(find(ElementType::kF64, -1e308, bad, count, at), expected);
      EXPECT_EQ(find(ElementType::kI32, 0x7f800000u, 0x7fc00000u, count, at), std::nullopt);
    }
  }
}

}  // namespace
}  // namespace bowline
