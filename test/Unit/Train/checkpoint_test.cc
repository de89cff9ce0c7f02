#include "runtime/train/checkpoint/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/base/safetensors.h"
#include "test/Unit/Base/temp_directory.h"
#include "test/Unit/Train/checkpoint_test_support.h"
#include "types/half.h"

namespace bowline {
namespace {

using ::testing::ElementsAre;

TEST(CheckpointTest, LoadsWhatWasSaved) {
  const TempDirectory directory;
  TestModel saved;
  saved.Fill(20);
  const TrainerState state = {.step = 20,
                              .seed = UINT64_MAX,
                              .order = DataOrder::kShuffle,
                              .next_draw = 160,
                              .data_tokens = 99'999,
                              .plan = "demo \"x\"",
                              .data_digest = "0123456789abcdef"};
  const auto path = SaveCheckpoint(directory / "runs/a", state, saved.Tensors(), "{\"model_type\": \"llama\"}\n");
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_EQ(*path, directory / "runs/a/step-00000020");

  for (const std::string& name : {*path, directory / "runs/a", directory / "runs/a/"}) {
    const auto checkpoint = Checkpoint::Open(name);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    EXPECT_EQ(checkpoint->path(), *path);
    EXPECT_EQ(checkpoint->state(), state);
    TestModel loaded;
    ASSERT_TRUE(checkpoint->Load(loaded.Tensors()).ok());
    EXPECT_EQ(loaded, saved);
  }
  EXPECT_EQ(ReadWholeFile(*path + "/config.json"), "{\"model_type\": \"llama\"}\n");
}

TEST(CheckpointTest, WhatIsNotSavedIsRoundedToItsType) {
  const TempDirectory directory;
  TestModel model;
  model.Fill(8);
  model.weight[0] = 1.0f + 0x1p-8f;    // half way between two numbers of bf16: to the even one
  model.weight[1] = 1.0f + 0x1.8p-7f;  // the same, upwards
  model.weight[2] = -1.0f - 0x1.1p-8f;
  ASSERT_TRUE(SaveCheckpoint(directory / "run", {.step = 8}, model.Tensors(), "").ok());
  const absl::StatusOr<Checkpoint> checkpoint = Checkpoint::Open(directory / "run");
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();

  TestModel loaded;
  std::vector<uint16_t> rounded(loaded.weight.size());
  std::vector<CheckpointTensor> tensors = loaded.Tensors();
  CheckpointTensor mirror = tensors[0];
  mirror.type = ElementType::kBF16;
  mirror.memory = HostTensorMemory(rounded.data());
  tensors.push_back(mirror);
  EXPECT_EQ(checkpoint->Load(tensors).code(), absl::StatusCode::kFailedPrecondition);
  tensors.back().is_saved = false;
  const absl::Status status = checkpoint->Load(tensors);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(loaded, model);
  EXPECT_EQ(rounded[0], 0x3f80);
  EXPECT_EQ(rounded[1], 0x3f82);
  EXPECT_EQ(rounded[2], 0xbf81);
  for (size_t i = 3; i < rounded.size(); ++i) EXPECT_EQ(rounded[i], F32ToBf16(model.weight[i]));
}

TEST(CheckpointTest, IsAHuggingFaceDirectory) {
  const TempDirectory directory;
  TestModel model;
  ASSERT_TRUE(SaveCheckpoint(directory.path(), {.step = 1}, model.Tensors(), "{}").ok());
  const auto weights = SafetensorsDirectory::Open(directory / "step-00000001");
  ASSERT_TRUE(weights.ok()) << weights.status();
  EXPECT_EQ(weights->tensors().size(), 1u);
  EXPECT_NE(weights->Find("model.weight"), nullptr);
  EXPECT_EQ(weights->files()[0]->metadata().at("format"), "pt");
}

TEST(CheckpointTest, SavingTwiceGivesEqualBytes) {
  const TempDirectory directory;
  TestModel model;
  model.Fill(3);
  for (const char* run : {"a", "b"}) {
    ASSERT_TRUE(SaveCheckpoint(directory / run, {.step = 3}, model.Tensors(), "").ok());
  }
  for (const char* file : {"model.safetensors", "optimizer.safetensors", "trainer_state.json"}) {
    EXPECT_EQ(ReadWholeFile(directory / "a/step-00000003/" + file),
              ReadWholeFile(directory / "b/step-00000003/" + file));
  }
  EXPECT_FALSE(std::filesystem::exists(directory / "a/step-00000003/config.json"));
}

TEST(CheckpointTest, OpensTheOneSavedLastAndKeepsTheOthers) {
  const TempDirectory directory;
  TestModel model;
  // A run that was resumed from step 10 after step 30 counts, not the higher number.
  for (int64_t step : {10, 30, 20}) {
    model.Fill(step);
    ASSERT_TRUE(SaveCheckpoint(directory.path(), {.step = step}, model.Tensors(), "").ok());
  }
  EXPECT_THAT(directory.List(), ElementsAre("latest", "step-00000010", "step-00000020", "step-00000030"));
  EXPECT_EQ(Checkpoint::Open(directory.path())->state().step, 20);
  EXPECT_EQ(Checkpoint::Open(directory.path())->later(), directory / "step-00000030");
  EXPECT_EQ(Checkpoint::Open(directory / "step-00000010")->state().step, 10);
  // Without a pointer, or with one whose checkpoint was deleted, the highest step.
  std::filesystem::remove_all(directory / "step-00000020");
  EXPECT_EQ(Checkpoint::Open(directory.path())->state().step, 30);
  EXPECT_EQ(Checkpoint::Open(directory.path())->later(), "");
  std::filesystem::remove(directory / "latest");
  EXPECT_EQ(Checkpoint::Open(directory.path())->state().step, 30);
}

TEST(CheckpointTest, DeletesTheOldOnesOfOneRunAlone) {
  const TempDirectory directory;
  TestModel model;
  for (const auto& [step, run] : {std::pair{1, "a"}, {2, "b"}, {3, ""}, {4, "a"}, {5, "a"}, {6, "a"}}) {
    ASSERT_TRUE(SaveCheckpoint(directory.path(), {.step = step, .run = run}, model.Tensors(), "").ok());
  }
  WriteWholeFile(directory / "step-00000004/trainer_state.json", "{");
  ASSERT_EQ(DeleteOldCheckpoints(directory.path(), 2, "a"), absl::OkStatus());
  EXPECT_THAT(directory.List(), ElementsAre("latest", "step-00000002", "step-00000003", "step-00000004",
                                            "step-00000005", "step-00000006"));
}

TEST(CheckpointTest, StepsPastEightDigitsSortByNumber) {
  const TempDirectory directory;
  TestModel model;
  for (int64_t step : {100'000'000, 99'999'999}) {
    ASSERT_TRUE(SaveCheckpoint(directory.path(), {.step = step}, model.Tensors(), "").ok());
  }
  std::filesystem::remove(directory / "latest");
  EXPECT_EQ(Checkpoint::Open(directory.path())->state().step, 100'000'000);
}

TEST(CheckpointTest, SavingAStepAgainReplacesIt) {
  const TempDirectory directory;
  TestModel model;
  for (int64_t value : {1, 2}) {
    model.Fill(value);
    ASSERT_TRUE(SaveCheckpoint(directory.path(), {.step = 5}, model.Tensors(), "").ok());
  }
  TestModel loaded;
  ASSERT_TRUE(Checkpoint::Open(directory.path())->Load(loaded.Tensors()).ok());
  EXPECT_EQ(loaded, model);
  EXPECT_THAT(directory.List(), ElementsAre("latest", "step-00000005"));
}

// The directory that remains without RENAME_EXCHANGE when a save of the same step dies between its two renames.
TEST(CheckpointTest, ACheckpointSetAsideIsFound) {
  const TempDirectory directory;
  TestModel model;
  model.Fill(5);
  ASSERT_TRUE(SaveCheckpoint(directory.path(), {.step = 5}, model.Tensors(), "").ok());
  std::filesystem::rename(directory / "step-00000005", directory / ".step-00000005.replaced");
  for (const std::string& path : {directory.path(), directory / "step-00000005"}) {
    const auto checkpoint = Checkpoint::Open(path);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    TestModel loaded;
    ASSERT_TRUE(checkpoint->Load(loaded.Tensors()).ok());
    EXPECT_EQ(loaded, model);
  }
}

}  // namespace
}  // namespace bowline
