#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdio>
#include <limits>

#include "runtime/base/safetensors_writer.h"
#include "runtime/train/checkpoint/checkpoint.h"
#include "runtime/train/checkpoint/saved_type.h"
#include "runtime/train/tensors/non_finite.h"
#include "runtime/train/tensors/stored_part.h"
#include "test/Unit/Base/temp_directory.h"
#include "test/Unit/Train/checkpoint_test_support.h"

namespace bowline {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CheckpointBadInputTest : public ::testing::Test {
 protected:
  CheckpointBadInputTest() {
    model_.Fill(7);
    EXPECT_TRUE(SaveCheckpoint(directory_.path(), {.step = 7}, model_.Tensors(), "").ok());
  }
  std::string OpenError() {
    const absl::Status status = Checkpoint::Open(directory_.path()).status();
    EXPECT_EQ(ExitCode(status), 1);
    return std::string(status.message());
  }
  // The message of loading into `tensors`; the model's memory must stay as it was.
  std::string LoadError(const std::vector<CheckpointTensor>& tensors) {
    const TestModel before = model_;
    const absl::Status status = Checkpoint::Open(directory_.path())->Load(tensors);
    EXPECT_EQ(ExitCode(status), 1);
    EXPECT_EQ(model_, before);
    return std::string(status.message());
  }

  TempDirectory directory_;
  TestModel model_;
  const std::string checkpoint_ = directory_ / "step-00000007";
};

TEST_F(CheckpointBadInputTest, NothingThere) {
  EXPECT_THAT(std::string(Checkpoint::Open(directory_ / "none").status().message()),
              HasSubstr("there is no directory"));
  std::filesystem::create_directory(directory_ / "empty");
  EXPECT_THAT(std::string(Checkpoint::Open(directory_ / "empty").status().message()), HasSubstr("holds no checkpoint"));
}

TEST_F(CheckpointBadInputTest, PointerIsDamaged) {
  for (const char* text : {"", "step-", "../../etc", "step-1x"}) {
    WriteWholeFile(directory_ / "latest", text);
    EXPECT_THAT(OpenError(),
                AllOf(HasSubstr("/latest' should be a file that names a checkpoint"), HasSubstr("delete it")));
  }
  std::filesystem::remove(directory_ / "latest");
  std::filesystem::create_directory(directory_ / "latest");
  EXPECT_THAT(OpenError(),
              AllOf(HasSubstr("/latest' should be a file that names a checkpoint"), HasSubstr("delete it")));
}

TEST_F(CheckpointBadInputTest, StateIsDamaged) {
  const std::string path = checkpoint_ + "/trainer_state.json";
  const std::string good = ReadWholeFile(path);
  const auto error_with = [&](const std::string& from, const std::string& to) {
    std::string bad = good;
    EXPECT_NE(bad.find(from), std::string::npos);
    bad.replace(bad.find(from), from.size(), to);
    WriteWholeFile(path, bad);
    return OpenError();
  };
  EXPECT_THAT(error_with("\"step\": 7", "\"step\": -7"), HasSubstr("\"step\" should be an integer from 0 on"));
  EXPECT_THAT(error_with("\"step\": 7", "\"step\": 9223372036854775808"), HasSubstr("\"step\" is too large"));
  EXPECT_THAT(error_with("\"seed\"", "\"sead\""), HasSubstr("\"seed\" should be an integer"));
  EXPECT_THAT(error_with("sequential", "random"), HasSubstr("unknown data order 'random'"));
  EXPECT_THAT(error_with("\"version\": 1", "\"version\": 2"), HasSubstr("version 2; supported is 1"));
  EXPECT_THAT(error_with("\"version\": 1", "\"version\": 1, \"run\": 5"), HasSubstr("\"run\" should be a string"));
  EXPECT_THAT(error_with("\"version\": 1", "\"version\": 1, \"recipe\": [1]"),
              HasSubstr("\"recipe\" should be an object"));
  const auto error_of = [&](const std::string& member) {
    return error_with("\"version\": 1", "\"version\": 1, " + member);
  };
  for (const std::string& run : {std::string("../../x"), std::string("a\\nb"), std::string(), std::string(65, 'a')}) {
    EXPECT_THAT(error_of("\"run\": \"" + run + "\""), HasSubstr("\"run\" should be 1 to 64 letters"));
  }
  EXPECT_THAT(error_of("\"batch\": 0"), HasSubstr("\"batch\" should be an integer from 1 on"));
  EXPECT_THAT(error_of("\"sequence\": 0"), HasSubstr("\"sequence\" should be an integer from 1 on"));
  EXPECT_THAT(error_of("\"recipe\": {\"lr\": [1]}"),
              HasSubstr("\"recipe\" has for \"lr\" neither a number nor a text"));
  EXPECT_THAT(error_of("\"recipe\": {\"l\\u001b[2Jr\": 1}"), HasSubstr("\"recipe\" has the name \"l\\x1b[2Jr\""));
  EXPECT_THAT(error_with("\"data_digest\": \"\"", "\"data_digest\": \"\\n\""), HasSubstr("\"data_digest\" should be"));
  EXPECT_THAT(error_with("\"plan\": \"\"", "\"plan\": 1"), HasSubstr("\"plan\" should be a string"));
  WriteWholeFile(path, good.substr(0, good.size() / 2));
  EXPECT_THAT(OpenError(), HasSubstr("trainer_state.json': not valid JSON"));
  WriteWholeFile(path, "[]");
  EXPECT_THAT(OpenError(), HasSubstr("should hold a JSON object"));
  WriteWholeFile(path, "");
  EXPECT_THAT(OpenError(), HasSubstr("is empty"));
}

TEST_F(CheckpointBadInputTest, TensorsDoNotFit) {
  auto tensors = model_.Tensors();
  tensors[0].key = "other";
  EXPECT_THAT(LoadError(tensors), AllOf(HasSubstr("model.safetensors': tensor 'other' is missing"),
                                        HasSubstr("saved from another model or plan")));
  tensors = model_.Tensors();
  tensors[1].shape = {500, 2};
  EXPECT_THAT(LoadError(tensors), HasSubstr("optimizer.safetensors': tensor 'model.weight.exp_avg' is F32 [1000] but "
                                            "the plan has F32 [500, 2]"));
  tensors = model_.Tensors();
  tensors[0].type = ElementType::kI32;
  EXPECT_THAT(LoadError(tensors), HasSubstr("is F32 [250, 4] but the plan has I32 [250, 4]"));
  tensors = model_.Tensors();
  tensors.pop_back();
  EXPECT_THAT(LoadError(tensors), HasSubstr("tensor 'step' is not in the plan"));
}

TEST_F(CheckpointBadInputTest, FilesOfAnotherCheckpoint) {
  const auto save = [&](const char* name, const TrainerState& state) {
    EXPECT_TRUE(SaveCheckpoint(directory_ / name, state, model_.Tensors(), "").ok());
    return directory_ / name + "/" + CheckpointName(state.step);
  };
  const TrainerState state = {
      .step = 7, .next_draw = 14, .batch = 2, .run = "a", .recipe = R"({"lr":1e-3,"beta1":0.9})"};
  TrainerState shuffled = state, drawn = state;
  shuffled.order = DataOrder::kShuffle;
  shuffled.run = "b";
  drawn.next_draw = 9;
  for (const char* file : {"model.safetensors", "optimizer.safetensors"}) {
    const std::string path = save("a", state);
    EXPECT_TRUE(Checkpoint::Open(path)->Load(model_.Tensors()).ok());
    const auto error_with = [&](const std::string& other, const std::string& name) {
      std::filesystem::copy_file(absl::StrCat(other, "/", name), absl::StrCat(path, "/", name),
                                 std::filesystem::copy_options::overwrite_existing);
      const absl::Status status = Checkpoint::Open(path)->Load(model_.Tensors());
      EXPECT_EQ(ExitCode(status), 1);
      return std::string(status.message());
    };
    EXPECT_THAT(error_with(save("b", {.step = 6, .run = "a"}), file),
                AllOf(HasSubstr(file), HasSubstr("at step 6, not at step 7")));
    EXPECT_THAT(error_with(save("c", shuffled), file), AllOf(HasSubstr(file), HasSubstr("other settings or data")));
    // A file that another program wrote says nothing of it.
    const float weights[1000] = {5};
    if (std::string(file) == "model.safetensors") {
      ASSERT_TRUE(WriteSafetensors(path + "/" + file, {{{"model.weight", ElementType::kF32, {250, 4}}, weights}}).ok());
      TestModel loaded;
      const absl::Status status = Checkpoint::Open(path)->Load(loaded.Tensors());
      ASSERT_TRUE(status.ok()) << status;
      EXPECT_EQ(loaded.weight[0], 5);
    }
    save("a", state);
    EXPECT_THAT(error_with(save("d", drawn), std::string(kStateFile)), HasSubstr("other settings or data"));
  }
}

TEST_F(CheckpointBadInputTest, ARoundedParameterThatSomebodyChanged) {
  const auto rounded = WithRoundedParameters(model_.Tensors(), ElementType::kBF16);
  ASSERT_TRUE(SaveCheckpoint(directory_.path(), {.step = 7}, rounded, "").ok());
  ASSERT_TRUE(Checkpoint::Open(directory_.path())->Load(model_.Tensors()).ok());
  // Of element [240, 1].
  model_.weight[961] = 0.5F;
  ASSERT_TRUE(SaveCheckpoint(directory_ / "other", {.step = 7}, rounded, "").ok());
  for (const char* file : {"model.safetensors", "optimizer.safetensors"}) {
    const std::string good = ReadWholeFile(checkpoint_ + "/" + file);
    std::filesystem::copy_file(directory_ / "other/step-00000007/" + file, checkpoint_ + "/" + file,
                               std::filesystem::copy_options::overwrite_existing);
    EXPECT_THAT(LoadError(model_.Tensors()),
                AllOf(HasSubstr("element [240, 1] of 'model.weight' differs from the rounded 'exact.model.weight'"),
                      HasSubstr("--weights")));
    WriteWholeFile(checkpoint_ + "/" + file, good);
  }
}

TEST_F(CheckpointBadInputTest, ValuesThatAreNotFinite) {
  model_.moment[961] = std::numeric_limits<float>::infinity();
  ASSERT_TRUE(SaveCheckpoint(directory_.path(), {.step = 7}, model_.Tensors(), "").ok());
  TestModel loaded;
  FiniteCheck refuses(false), allows(true);
  const auto load = [&](FiniteCheck* check) {
    return Checkpoint::Open(directory_.path())->Load(loaded.Tensors(), {}, absl::OkStatus, check);
  };
  const absl::Status status = load(&refuses);
  EXPECT_TRUE(IsNotFinite(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("'model.weight.exp_avg' is not finite from element [961] on"));
  ASSERT_TRUE(load(&allows).ok());
  EXPECT_EQ(loaded, model_);
  EXPECT_THAT(allows.found(), HasSubstr("[961]"));
  EXPECT_TRUE(load(nullptr).ok());
}

TEST_F(CheckpointBadInputTest, FilesAreDamagedOrMissing) {
  const std::string path = checkpoint_ + "/optimizer.safetensors";
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  EXPECT_THAT(LoadError(model_.Tensors()), AllOf(HasSubstr("optimizer.safetensors'"), HasSubstr("truncated")));
  std::filesystem::remove(path);
  EXPECT_THAT(LoadError(model_.Tensors()), HasSubstr("optimizer.safetensors': No such file"));
}

// A process with a file size limit fails as on a full disk.
TEST_F(CheckpointBadInputTest, AFullDiskWhileSavingLeavesTheOldCheckpoint) {
  const auto save = [&](int64_t step) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {2000, 2000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const auto saved = SaveCheckpoint(directory_.path(), {.step = step}, model_.Tensors(), "");
    std::fprintf(stderr, "%s\n", std::string(saved.status().message()).c_str());
    std::exit(ExitCode(saved.status()));
  };
  for (int64_t step : {8, 7}) {
    EXPECT_EXIT(save(step), ::testing::ExitedWithCode(3),
                "checkpoint of step [78] was not saved: cannot write '.*/model.safetensors': .*choose another path");
    EXPECT_THAT(directory_.List(), ElementsAre("latest", "step-00000007"));
    TestModel loaded;
    ASSERT_TRUE(Checkpoint::Open(directory_.path())->Load(loaded.Tensors()).ok());
    EXPECT_EQ(loaded, model_);
  }
}

TEST_F(CheckpointBadInputTest, AnUnusableDirectoryIsAnError) {
  WriteWholeFile(directory_ / "file", "");
  const absl::Status status = SaveCheckpoint(directory_ / "file", {.step = 1}, model_.Tensors(), "").status();
  EXPECT_EQ(ExitCode(status), 1);
  EXPECT_THAT(std::string(status.message()), HasSubstr("checkpoint of step 1 was not saved"));
}

}  // namespace
}  // namespace bowline
