// Decisions that the ranks of a run take together, and checkpoints that they save together.

#include "runtime/train/checkpoint/parallel_save.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <random>

#include "runtime/train/checkpoint/save_checkpoint.h"
#include "test/Support/test_seed.h"
#include "test/Unit/Base/temp_directory.h"
#include "test/Unit/Train/agreement_fixture.h"
#include "test/Unit/Train/checkpoint_test_support.h"

namespace bowline {
namespace {

using ::testing::AllOf;
using testing::AsRanks;
using testing::AsRanksOk;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(AgreementTest, AllHaveTheTextOfRankZero) {
  for (const int ranks : {1, 2, 5}) {
    AsRanksOk(ranks, [&](Agreement& agreement, RankGroup& group) -> absl::Status {
      EXPECT_EQ(agreement.rank(), group.rank());
      EXPECT_EQ(agreement.ranks(), ranks);
      const std::string odd("/a\0\xff\n", 5);
      for (const std::string& text : {std::string("x"), std::string(), odd, std::string(5000, 'y')}) {
        BOWLINE_ASSIGN_OR_RETURN(const std::string got,
                                 agreement.FromRankZero(agreement.rank() == 0 ? text : "something else"));
        EXPECT_EQ(got, text);
      }
      return absl::OkStatus();
    });
  }
}

TEST(AgreementTest, TheFirstErrorIsThatOfAll) {
  for (const int ranks : {1, 2, 5}) {
    AsRanksOk(ranks, [&](Agreement& agreement, RankGroup&) -> absl::Status {
      for (int failing = 0; failing < ranks; ++failing) {
        BOWLINE_RETURN_IF_ERROR(agreement.AllOk(absl::OkStatus()));
        const absl::Status mine = agreement.rank() < failing
                                      ? absl::OkStatus()
                                      : absl::DataLossError(absl::StrCat("file of ", agreement.rank()));
        const absl::Status all = agreement.AllOk(mine);
        EXPECT_EQ(all.code(), absl::StatusCode::kDataLoss);
        const std::string error = absl::StrCat("file of ", failing);
        EXPECT_EQ(all.message(), ranks == 1 ? error : absl::StrCat("rank ", failing, ": ", error));
      }
      return absl::OkStatus();
    });
  }
}

RankMesh MeshOf(int ranks) { return {{{"dp", static_cast<uint32_t>(ranks)}}}; }

// Each rank has a model of its own; all are equal.
absl::StatusOr<std::string> Save(const std::string& directory, int64_t step, int64_t n, Agreement& agreement,
                                 size_t size = 1000) {
  TestModel model(size);
  model.Fill(n);
  return SaveCheckpointOfRanks(
      directory, {{.step = step, .next_draw = n}, model.Tensors(), "{}", {MeshOf(agreement.ranks()), agreement.rank()}},
      agreement);
}

// Loads as one rank: the number that the values follow from; -1 when they follow from none.
absl::StatusOr<int64_t> LoadNumber(const std::string& directory, size_t size = 1000) {
  BOWLINE_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::Open(directory));
  TestModel loaded(size), expected(size);
  BOWLINE_RETURN_IF_ERROR(checkpoint.Load(loaded.Tensors()));
  expected.Fill(checkpoint.state().next_draw);
  return loaded == expected ? checkpoint.state().next_draw : -1;
}

TEST(ParallelSaveTest, RanksSaveTogether) {
  const TempDirectory directory;
  AsRanksOk(3, [&](Agreement& agreement, RankGroup&) -> absl::Status {
    for (const int64_t step : {5, 6, 5}) {
      BOWLINE_ASSIGN_OR_RETURN(const std::string path, Save(directory / "run", step, step + 1, agreement));
      EXPECT_EQ(path, directory / absl::StrCat("run/step-0000000", step));
    }
    return absl::OkStatus();
  });
  EXPECT_EQ(*LoadNumber(directory / "run"), 6);
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory / "run/step-00000006")) {
    files.push_back(entry.path().filename());
  }
  std::sort(files.begin(), files.end());
  EXPECT_THAT(files, ElementsAre("config.json", "optimizer.rank-00000.safetensors", "optimizer.rank-00001.safetensors",
                                 "optimizer.rank-00002.safetensors", "parameters.rank-00000.safetensors",
                                 "parameters.rank-00001.safetensors", "parameters.rank-00002.safetensors",
                                 "shards.json", "trainer_state.json"));
}

TEST(ParallelSaveTest, ARankThatGoesLeavesTheOldCheckpoint) {
  const TempDirectory directory;
  const auto statuses = AsRanks(3, [&](Agreement& agreement, RankGroup& group) -> absl::Status {
    BOWLINE_RETURN_IF_ERROR(Save(directory.path(), 5, 1, agreement).status());
    if (agreement.rank() != 1) return Save(directory.path(), 6, 2, agreement).status();
    // As in a save: the directory is there.
    BOWLINE_RETURN_IF_ERROR(agreement.AllOkAfter("saving", [] { return absl::OkStatus(); }));
    group.Abort(absl::DataLossError("rank 1 fell over"));
    return absl::OkStatus();
  });
  for (const int rank : {0, 2}) {
    EXPECT_THAT(std::string(statuses[rank].message()),
                AllOf(HasSubstr("checkpoint of step 6 was not saved"), HasSubstr("rank 1 fell over")));
  }
  EXPECT_EQ(*LoadNumber(directory.path()), 1);
  EXPECT_THAT(directory.List(), ElementsAre("latest", "step-00000005"));
}

TEST(ParallelSaveTest, AnUnusableDirectoryIsTheErrorOfAll) {
  const TempDirectory directory;
  WriteWholeFile(directory / "file", "");
  const auto statuses =
      AsRanks(2, [&](Agreement& agreement, RankGroup&) { return Save(directory / "file", 1, 1, agreement).status(); });
  for (const absl::Status& status : statuses) {
    EXPECT_THAT(std::string(status.message()), HasSubstr("checkpoint of step 1 was not saved: rank 0: "));
    EXPECT_EQ(ExitCode(status), 1);
  }
}

// The checkpoint is no less complete than others, and the error says where it is.
TEST(ParallelSaveTest, ACheckpointThatDoesNotBecomeTheLatestIsNotCalledUnsaved) {
  for (const int ranks : {1, 2}) {
    const TempDirectory directory;
    std::filesystem::create_directory(directory / "latest");
    const auto statuses = AsRanks(
        ranks, [&](Agreement& agreement, RankGroup&) { return Save(directory.path(), 5, 1, agreement).status(); });
    const std::string path = directory / "step-00000005";
    for (const absl::Status& status : statuses) {
      EXPECT_THAT(std::string(status.message()),
                  AllOf(HasSubstr(absl::StrCat("the checkpoint '", path, "' is complete, and --resume ", path)),
                        HasSubstr("latest'"), Not(HasSubstr("not saved"))));
    }
    EXPECT_EQ(*LoadNumber(path), 1);
  }
}

// Ranks with disks of their own: only rank 0 finds the directory that it made.
TEST(ParallelSaveTest, RanksThatDoNotShareADirectoryAreTold) {
  TestModel model;
  const std::vector<CheckpointTensor> tensors = model.Tensors();
  const RankInMesh self = {MeshOf(2), 1};
  const auto parts = StoredParts(tensors, self);
  ASSERT_TRUE(parts.ok()) << parts.status();
  const absl::Status status = WriteParts("/nowhere/.step-00000001.tmp-1", {.step = 1}, *parts, self, nullptr);
  EXPECT_EQ(ExitCode(status), 1);
  EXPECT_THAT(std::string(status.message()), HasSubstr("a directory that all ranks share"));
}

// Only the second rank's file exceeds the limit of the process, as on a disk that is nearly full.
TEST(ParallelSaveTest, AFullDiskNamesRankAndFile) {
  const TempDirectory directory;
  const auto save = [&](int64_t step) {
    const auto statuses = AsRanks(2, [&](Agreement& agreement, RankGroup&) {
      std::vector<float> few(10), many(20'000);
      const std::vector<CheckpointTensor> tensors = {{"few",
                                                      CheckpointRole::kParameter,
                                                      ElementType::kF32,
                                                      {10},
                                                      agreement.rank() == 0 ? HostTensorMemory(few.data()) : nullptr},
                                                     {"many",
                                                      CheckpointRole::kParameter,
                                                      ElementType::kF32,
                                                      {20'000},
                                                      agreement.rank() == 1 ? HostTensorMemory(many.data()) : nullptr,
                                                      {.role = 1}}};
      return SaveCheckpointOfRanks(directory.path(),
                                   {{.step = step}, tensors, "", {{{{"pp", 2}}, 0}, agreement.rank()}}, agreement)
          .status();
    });
    if (statuses[0] != statuses[1]) std::exit(77);
    std::fprintf(stderr, "%s\n", std::string(statuses[0].message()).c_str());
    std::exit(ExitCode(statuses[0]));
  };
  EXPECT_EXIT(save(7), ::testing::ExitedWithCode(0), "");
  for (const int64_t step : {8, 7}) {
    const auto save_limited = [&] {
      std::signal(SIGXFSZ, SIG_IGN);
      const rlimit limit = {50'000, 50'000};
      ::setrlimit(RLIMIT_FSIZE, &limit);
      save(step);
    };
    EXPECT_EXIT(save_limited(), ::testing::ExitedWithCode(3),
                "checkpoint of step [78] was not saved: rank 1: cannot write '.*/parameters.rank-00001.safetensors'");
    EXPECT_THAT(directory.List(), ElementsAre("latest", "step-00000007"));
  }
}

// Kills runs of three ranks at random times; each time the checkpoint must be whole, and no older than the one before.
TEST(ParallelSaveTest, KilledAtAnyInstant) {
  const TempDirectory directory;
  constexpr size_t kSize = 20'000;
  const auto save_forever = [&](int64_t n) {
    AsRanks(3, [&](Agreement& agreement, RankGroup&) -> absl::Status {
      for (int64_t i = n;; ++i) BOWLINE_RETURN_IF_ERROR(Save(directory.path(), i % 2, i, agreement, kSize).status());
    });
    ::_exit(1);
  };
  AsRanksOk(3,
            [&](Agreement& agreement, RankGroup&) { return Save(directory.path(), 1, 1, agreement, kSize).status(); });
  std::mt19937 random(TestSeed());
  int64_t last = 1;
  int kills = 0;
  unsigned longest = 60'000;
  for (; kills < 25 || (kills < 60 && last == 1); ++kills) {
    // On a slow machine a save takes longer than that.
    if (last == 1 && kills % 5 == 4) longest = std::min(2 * longest, 4'000'000u);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) save_forever(last + 1);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % longest));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the saver failed";
    const absl::StatusOr<int64_t> n = LoadNumber(directory.path(), kSize);
    ASSERT_TRUE(n.ok()) << n.status();
    ASSERT_GE(*n, last) << "older, or a mixture";
    last = *n;
  }
  EXPECT_GT(last, 1);
}

}  // namespace
}  // namespace bowline
