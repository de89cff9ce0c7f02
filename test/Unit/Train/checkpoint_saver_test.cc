// Saves beside the steps of several ranks, and the directory that they save into.

#include "runtime/train/checkpoint/checkpoint_saver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "runtime/plan/plan_writer.h"
#include "runtime/train/checkpoint/save_directory.h"
#include "runtime/train/tensors/non_finite.h"
#include "runtime/train/train_loop.h"
#include "test/Unit/Base/temp_directory.h"
#include "test/Unit/Train/agreement_fixture.h"
#include "test/Unit/Train/checkpoint_test_support.h"
#include "test/Unit/Train/toy_run.h"

namespace bowline {
namespace {

using ::testing::AllOf;
using testing::AsRanks;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

CheckpointContent ContentOf(TestModel& model, int64_t step, const Agreement& agreement) {
  const RankMesh mesh = {{{"dp", static_cast<uint32_t>(agreement.ranks())}}};
  return {{.step = step, .next_draw = step}, model.Tensors(), "{}", {mesh, agreement.rank()}};
}

void ExpectSaved(const std::string& path, int64_t step) {
  const auto checkpoint = Checkpoint::Open(path);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->state().step, step);
  TestModel loaded(1000), expected(1000);
  ASSERT_TRUE(checkpoint->Load(loaded.Tensors()).ok());
  expected.Fill(step);
  EXPECT_TRUE(loaded == expected);
}

TEST(CheckpointSaverTest, ACopyIsWrittenWhileTheStatesChange) {
  for (const int ranks : {1, 3}) {
    const TempDirectory directory;
    std::vector<int64_t> saved;
    const auto statuses = AsRanks(ranks, [&](Agreement& agreement, RankGroup&) -> absl::Status {
      TestModel model(1000);
      CheckpointSaver saver({.directory = directory.path(),
                             .on_saved =
                                 [&](const SavedCheckpoint& one) {
                                   EXPECT_LE(one.stall, one.seconds);
                                   if (agreement.rank() == 0) saved.push_back(one.step);
                                 },
                             .on_note = [](absl::string_view note) { ADD_FAILURE() << note; }},
                            &agreement);
      for (int64_t step = 1; step <= 4; ++step) {
        model.Fill(step);
        BOWLINE_RETURN_IF_ERROR(saver.Save(ContentOf(model, step, agreement), /*in_background=*/true));
        model.Fill(step + 100);
        BOWLINE_RETURN_IF_ERROR(saver.Poll());
      }
      return saver.Finish();
    });
    for (const absl::Status& status : statuses) EXPECT_TRUE(status.ok()) << status;
    EXPECT_THAT(saved, ElementsAre(1, 2, 3, 4));
    for (const int64_t step : {1, 2, 3, 4}) ExpectSaved(directory / absl::StrCat("step-0000000", step), step);
    ExpectSaved(directory.path(), 4);
  }
}

// One of three ranks has no room for a copy: all wait for the save, which says so once.
TEST(CheckpointSaverTest, StepsWaitWhereACopyDoesNotFit) {
  const TempDirectory directory;
  std::vector<std::string> notes;
  const auto statuses = AsRanks(3, [&](Agreement& agreement, RankGroup&) -> absl::Status {
    TestModel model(1000);
    CheckpointSaver saver(
        {.directory = directory.path(),
         .on_saved = [](const SavedCheckpoint& one) { EXPECT_LE(one.stall, one.seconds); },
         .on_note = [&](absl::string_view note) { notes.emplace_back(note); },
         .available_memory = [&] { return agreement.rank() == 1 ? uint64_t{1000} : uint64_t{1} << 40; }},
        &agreement);
    for (int64_t step = 1; step <= 2; ++step) {
      model.Fill(step);
      BOWLINE_RETURN_IF_ERROR(saver.Save(ContentOf(model, step, agreement), /*in_background=*/true));
      // Named when Save returns.
      if (agreement.rank() == 0) ExpectSaved(directory.path(), step);
    }
    return saver.Finish();
  });
  for (const absl::Status& status : statuses) EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(notes, ElementsAre(HasSubstr("steps wait for saves to end: a copy of the states does not fit")));
}

// The first copy takes memory, and the second copy reuses it; the third copy finds that other processes took the free
// memory.
TEST(CheckpointSaverTest, TheMemoryOfACopyIsKeptWhileThereIsEnough) {
  const TempDirectory directory;
  std::vector<std::string> notes;
  Agreement alone;
  TestModel model(1000);
  uint64_t bytes = 0;
  const CheckpointContent content = ContentOf(model, 0, alone);
  const auto parts = StoredParts(content.tensors, content.self);
  ASSERT_TRUE(parts.ok()) << parts.status();
  for (const StoredPart& part : *parts) bytes += *part.bytes();
  uint64_t available = 2 * bytes;
  CheckpointSaver saver({.directory = directory.path(),
                         .on_saved = [](const SavedCheckpoint&) {},
                         .on_note = [&](absl::string_view note) { notes.emplace_back(note); },
                         .available_memory = [&] { return available; }},
                        &alone);
  for (int64_t step = 1; step <= 3; ++step) {
    if (step == 3) available = bytes / 2;
    model.Fill(step);
    ASSERT_EQ(saver.Save(ContentOf(model, step, alone), /*in_background=*/true), absl::OkStatus());
    EXPECT_EQ(notes.size(), step == 3 ? 1u : 0u);
    available = bytes;
    model.Fill(step + 100);
    ASSERT_EQ(saver.Finish(), absl::OkStatus());
    ExpectSaved(directory.path(), step);
  }
}

// All files are written, and then a rank is gone: rank 0 names the checkpoint without an agreement.
TEST(CheckpointSaverTest, ASaveThatIsWrittenOutlivesARank) {
  const TempDirectory directory;
  const auto statuses = AsRanks(3, [&](Agreement& agreement, RankGroup& group) -> absl::Status {
    TestModel model(1000);
    CheckpointSaver saver(
        {.directory = directory.path(), .on_saved = [](const SavedCheckpoint&) {}, .on_note = [](absl::string_view) {}},
        &agreement);
    model.Fill(5);
    BOWLINE_RETURN_IF_ERROR(saver.Save(ContentOf(model, 5, agreement), /*in_background=*/true));
    if (agreement.rank() != 2) return agreement.AnyOf(false).status();
    group.Abort(absl::DataLossError("rank 2 fell over"));
    return absl::OkStatus();
  });
  EXPECT_THAT(std::string(statuses[0].message()), HasSubstr("rank 2 fell over"));
  ExpectSaved(directory.path(), 5);
}

// Rank 0 fails alone, and the others, who do not know it, take longer to write than one waits for files of the dead.
TEST(CheckpointSaverTest, ASaveThatOthersStillWriteIsWaitedFor) {
  const TempDirectory directory;
  std::vector<std::string> notes;
  const auto statuses = AsRanks(2, [&](Agreement& agreement, RankGroup&) -> absl::Status {
    TestModel model(1000);
    model.Fill(5);
    if (agreement.rank() == 0) {
      CheckpointSaver saver({.directory = directory.path(),
                             .on_saved = [](const SavedCheckpoint&) {},
                             .on_note = [&](absl::string_view note) { notes.emplace_back(note); },
                             .patience = std::chrono::milliseconds(100)},
                            &agreement);
      return saver.Save(ContentOf(model, 5, agreement), /*in_background=*/true);
    }
    // As the saver does, but slowly.
    BOWLINE_RETURN_IF_ERROR(agreement.RanksOfThisMachine().status());
    BOWLINE_RETURN_IF_ERROR(agreement.AnyOf(false).status());
    BOWLINE_ASSIGN_OR_RETURN(const std::unique_ptr<ParallelSave> save,
                             ParallelSave::Begin(directory.path(), ContentOf(model, 5, agreement), {}, agreement));
    PageMemory copy;
    BOWLINE_ASSIGN_OR_RETURN(const bool copied, save->Copy(copy, agreement));
    EXPECT_TRUE(copied);
    std::this_thread::sleep_for(std::chrono::seconds(1));
    return save->Write();
  });
  for (const absl::Status& status : statuses) EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(notes, IsEmpty());
  ExpectSaved(directory.path(), 5);
}

// The loss of step 2 is infinite while the checkpoint of step 1 is written: all ranks name it together, however long
// one of them writes, before the error ends them.
TEST(CheckpointSaverTest, ASaveInTheBackgroundOutlivesALossThatIsNoNumber) {
  constexpr int kRanks = 2;
  // Large, so that the files take longer than a step.
  const ToyShape shape = {.vocabulary = 40'000, .width = 16, .lr = 1e30};
  const ToyData data(50, 7, 1);
  fbs::PlanT plan = ToyTrainPlan(shape);
  plan.mesh.push_back(std::make_unique<fbs::AxisT>());
  plan.mesh.back()->name = "dp";
  plan.mesh.back()->size = kRanks;
  const auto bytes = WritePlan(plan);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  struct Saves : TrainObserver {
    std::vector<int64_t> steps;
    void OnSave(int64_t step, const std::string&) override { steps.push_back(step); }
  };
  const TempDirectory directory;
  std::vector<Saves> saves(kRanks);
  const auto statuses = AsRanks(kRanks, [&](Agreement& agreement, RankGroup& group) -> absl::Status {
    BOWLINE_ASSIGN_OR_RETURN(LoadedPlan loaded, LoadedPlan::FromBytes({bytes->data(), bytes->size()}));
    SessionOptions options;
    options.group = &group;
    options.prove = false;  // made by hand
    BOWLINE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Create(std::move(loaded), options));
    BOWLINE_ASSIGN_OR_RETURN(Trainer trainer,
                             Trainer::Create(session.get(), data.dataset.get(), DataOrder::kSequential));
    BOWLINE_RETURN_IF_ERROR(trainer.Initialize());
    const std::atomic<bool> stop{false};
    return RunTrainLoop({.steps = 4, .save_directory = directory.path(), .save_every = 1, .saves_in_background = true},
                        trainer, nullptr, nullptr, saves[static_cast<size_t>(agreement.rank())], stop, &agreement)
        .status();
  });
  for (const absl::Status& status : statuses) {
    EXPECT_TRUE(IsNotFinite(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("step 2: the loss is "));
  }
  for (const Saves& of_rank : saves) EXPECT_THAT(of_rank.steps, ElementsAre(1));
  EXPECT_EQ(Checkpoint::Open(directory.path())->state().step, 1);
}

// A rank is gone when rank 0 has named the checkpoint, and before all know: it is saved, and nothing says otherwise.
TEST(CheckpointSaverTest, ASaveThatHasItsNameIsReportedThoughARankIsGone) {
  const TempDirectory directory;
  std::vector<int64_t> saved;
  std::vector<std::string> notes;
  const auto statuses = AsRanks(3, [&](Agreement& agreement, RankGroup& group) -> absl::Status {
    TestModel model(1000);
    CheckpointSaver saver({.directory = directory.path(),
                           .on_saved =
                               [&](const SavedCheckpoint& checkpoint) {
                                 if (agreement.rank() == 0) saved.push_back(checkpoint.step);
                               },
                           .on_note =
                               [&](absl::string_view note) {
                                 if (agreement.rank() == 0) notes.emplace_back(note);
                               }},
                          &agreement);
    model.Fill(5);
    BOWLINE_RETURN_IF_ERROR(saver.Save(ContentOf(model, 5, agreement), /*in_background=*/true));
    if (agreement.rank() != 2) return saver.Finish();
    // As the others do, up to the name.
    BOWLINE_RETURN_IF_ERROR(agreement.AllOkAfter("saving", [] { return absl::OkStatus(); }));
    BOWLINE_RETURN_IF_ERROR(agreement.AllOk(absl::OkStatus()));
    while (!std::filesystem::exists(directory / "latest")) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    group.Abort(absl::DataLossError("rank 2 fell over"));
    return absl::OkStatus();
  });
  EXPECT_THAT(std::string(statuses[0].message()),
              AllOf(HasSubstr("rank 2 fell over"), Not(HasSubstr("was not saved"))));
  EXPECT_THAT(saved, ElementsAre(5));
  EXPECT_THAT(notes, IsEmpty());
  ExpectSaved(directory.path(), 5);
}

TEST(AgreementTest, ARankAtWorkIsWaitedForLongerThanOneThatIsSilent) {
  const auto timeout = std::chrono::seconds(2);
  std::vector<std::string> notes;
  const auto statuses = AsRanks(
      3,
      [&](Agreement& agreement, RankGroup&) {
        if (agreement.rank() == 0) agreement.SetNotes([&](absl::string_view note) { notes.emplace_back(note); });
        return agreement.AllOkAfter("saving", [&] {
          if (agreement.rank() == 1) std::this_thread::sleep_for(2 * timeout);
          return agreement.rank() == 2 ? absl::DataLossError("full") : absl::OkStatus();
        });
      },
      timeout);
  for (const absl::Status& status : statuses) EXPECT_EQ(status, absl::DataLossError("rank 2: full"));
  EXPECT_THAT(notes, ElementsAre("waiting for rank 1, which is saving"));
}

TEST(AgreementTest, RanksOfOneProcessAreOnOneMachine) {
  AsRanks(3, [&](Agreement& agreement, RankGroup&) -> absl::Status {
    BOWLINE_ASSIGN_OR_RETURN(const int here, agreement.RanksOfThisMachine());
    EXPECT_EQ(here, 3);
    return absl::OkStatus();
  });
}

class SaveDirectoryTest : public ::testing::Test {
 protected:
  absl::Status Prepare(SaveDirectory& save, const std::string& path, const SaveDirectory::Run& run) {
    return save.Prepare(path, run, alone_, [this](absl::string_view note) { notes_.emplace_back(note); });
  }
  void SaveAs(const std::string& run, int64_t step) {
    TestModel model(10);
    ASSERT_TRUE(SaveCheckpoint(directory_ / "s", {.step = step, .run = run}, model.Tensors(), "{}").ok());
  }

  TempDirectory directory_;
  Agreement alone_;
  std::vector<std::string> notes_;
};

TEST_F(SaveDirectoryTest, IsTakenBackUnlessTheRunBegins) {
  {
    SaveDirectory save;
    ASSERT_EQ(Prepare(save, directory_ / "s", {.id = "a"}), absl::OkStatus());
    EXPECT_TRUE(std::filesystem::exists(directory_ / "s"));
  }
  EXPECT_THAT(directory_.List(), IsEmpty());
  {
    SaveDirectory save;
    ASSERT_EQ(Prepare(save, directory_ / "s", {.id = "a"}), absl::OkStatus());
    save.Keep();
  }
  EXPECT_THAT(directory_.List(), ElementsAre("s"));
  EXPECT_THAT(notes_, IsEmpty());
}

// A second run may not enter a directory that the first one makes again.
TEST_F(SaveDirectoryTest, IsLockedAgainWhereSomebodyDeletedIt) {
  const std::string path = directory_ / "s";
  const auto note = [this](absl::string_view text) { notes_.emplace_back(text); };
  SaveDirectory save;
  ASSERT_EQ(Prepare(save, path, {.id = "a"}), absl::OkStatus());
  save.Keep();
  SaveAs("a", 1);
  EXPECT_EQ(save.Hold(note), absl::OkStatus());
  EXPECT_THAT(notes_, IsEmpty());
  std::filesystem::remove_all(path);
  EXPECT_EQ(save.Hold(note), absl::OkStatus());
  EXPECT_THAT(notes_, ElementsAre(absl::StrCat("somebody deleted or moved '", path,
                                               "' while this run saves into it; it was made again")));
  {
    SaveDirectory second;
    EXPECT_THAT(std::string(Prepare(second, path, {.id = "b"}).message()), HasSubstr("another run is saving into '"));
  }
  // The lock alone; the run's own checkpoints are no other run's.
  SaveAs("a", 2);
  std::filesystem::remove(path + "/.lock");
  EXPECT_EQ(save.Hold(note), absl::OkStatus());
  ASSERT_EQ(notes_.size(), 2u);
  EXPECT_THAT(notes_[1], HasSubstr("it was locked again"));
  // Another run was faster.
  std::filesystem::remove_all(path);
  SaveDirectory second;
  ASSERT_EQ(Prepare(second, path, {.id = "b"}), absl::OkStatus());
  EXPECT_THAT(std::string(save.Hold(note).message()), HasSubstr("another run is saving into '"));
}

TEST_F(SaveDirectoryTest, IsOfOneRunAtATime) {
  SaveDirectory first, second;
  ASSERT_EQ(Prepare(first, directory_ / "s", {.id = "a"}), absl::OkStatus());
  const absl::Status status = Prepare(second, directory_ / "s", {.id = "b"});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("another run is saving into '"),
                                                   HasSubstr(absl::StrCat("process ", ::getpid(), " on "))));
}

// The lock of a process of another host that is gone lasts a little longer than the process.
TEST_F(SaveDirectoryTest, WaitsForTheLockOfAnotherHost) {
  std::optional<SaveDirectory> first(std::in_place);
  ASSERT_EQ(Prepare(*first, directory_ / "s", {.id = "a"}), absl::OkStatus());
  first->Keep();
  WriteWholeFile(directory_ / "s/.lock", "7 on elsewhere\n");
  SaveDirectory second, third;
  EXPECT_THAT(std::string(Prepare(second, directory_ / "s", {.id = "a", .patience = {}}).message()),
              HasSubstr("another run is saving into '"));
  std::thread gone([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    first.reset();
  });
  EXPECT_EQ(Prepare(third, directory_ / "s", {.id = "a"}), absl::OkStatus());
  gone.join();
}

TEST_F(SaveDirectoryTest, TakesCheckpointsOfTheSameRunAlone) {
  const std::string path = directory_ / "s", step = path + "/step-00000003";
  const auto prepare = [&](const SaveDirectory::Run& run) {
    SaveDirectory save;
    return Prepare(save, path, run);
  };
  SaveAs("a", 3);
  EXPECT_EQ(prepare({.id = "a"}), absl::OkStatus());
  for (const std::string& resumed : {std::string(), step}) {
    const absl::Status other = prepare({.id = "b", .resumed_from = resumed});
    EXPECT_EQ(other.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(other.message()), HasSubstr("holds checkpoints of another run, the latest step-00000003"));
  }
  // Older ones do not say whose they are.
  SaveAs("", 3);
  EXPECT_EQ(prepare({.id = "b"}).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(prepare({.id = "b", .resumed_from = step}), absl::OkStatus());
}

TEST_F(SaveDirectoryTest, KeepsWhatIsNoCheckpoint) {
  const std::string path = directory_ / "s", notes = path + "/step-00000002/notes.txt";
  SaveAs("a", 3);
  std::filesystem::create_directories(path + "/step-00000002");
  WriteWholeFile(notes, "mine");
  SaveDirectory save;
  const absl::Status status =
      Prepare(save, path, {.id = "a", .resumed_from = path + "/step-00000001", .first_step = 1});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("step-00000002' is no checkpoint of this run, or cannot be read; a save of this step would "
                        "replace it: move it elsewhere"));
  EXPECT_TRUE(std::filesystem::exists(notes));
  // A run that is behind it never comes there.
  EXPECT_EQ(Prepare(save, path, {.id = "a", .resumed_from = path + "/step-00000003", .first_step = 3}),
            absl::OkStatus());
}

// One damaged file says nothing about the other checkpoints.
TEST_F(SaveDirectoryTest, IsOfAnotherRunThoughItsLatestCannotBeRead) {
  const std::string path = directory_ / "s";
  SaveAs("a", 3);
  SaveAs("a", 5);
  for (const char* file : {"/latest", "/step-00000005/trainer_state.json"}) {
    WriteWholeFile(path + file, "");
    SaveDirectory save;
    EXPECT_THAT(std::string(Prepare(save, path, {.id = "b"}).message()),
                HasSubstr("holds checkpoints of another run, the latest step-00000005"));
  }
  SaveDirectory save;
  EXPECT_THAT(
      std::string(Prepare(save, path, {.id = "a", .resumed_from = path + "/step-00000003", .first_step = 3}).message()),
      HasSubstr("step-00000005' is no checkpoint of this run, or cannot be read"));
}

TEST_F(SaveDirectoryTest, ASaveSparesCheckpointsOfAnotherRun) {
  const std::string path = directory_ / "s";
  SaveAs("a", 3);
  SaveAs("other", 5);
  SaveDirectory save;
  EXPECT_THAT(
      std::string(Prepare(save, path, {.id = "a", .resumed_from = path + "/step-00000003", .first_step = 3}).message()),
      HasSubstr("step-00000005' is no checkpoint of this run"));
}

TEST_F(SaveDirectoryTest, TheLockIsNoLinkToAnotherFile) {
  const std::string path = directory_ / "s";
  std::filesystem::create_directory(path);
  WriteWholeFile(directory_ / "precious", "precious");
  std::filesystem::create_symlink("../precious", path + "/.lock");
  SaveDirectory save;
  EXPECT_THAT(std::string(Prepare(save, path, {.id = "a"}).message()), HasSubstr("cannot write '"));
  EXPECT_EQ(ReadWholeFile(directory_ / "precious"), "precious");
}

// The first save is no time to find out.
TEST_F(SaveDirectoryTest, TriesWhatASaveDoes) {
  const std::string path = directory_ / "s";
  SaveAs("a", 3);
  {
    SaveDirectory save;
    EXPECT_EQ(Prepare(save, path, {.id = "a"}), absl::OkStatus());
    // The lock, the checkpoint and `latest`.
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(path), std::filesystem::directory_iterator()), 3);
  }
  std::filesystem::remove(path + "/latest");
  std::filesystem::create_directory(path + "/latest");
  SaveDirectory save;
  EXPECT_THAT(std::string(Prepare(save, path, {.id = "a"}).message()), HasSubstr("latest' is a directory"));
}

// A disk may have room for one more checkpoint only without those that the run no longer keeps.
TEST_F(SaveDirectoryTest, DeletesOldCheckpointsBeforeTheFirstSaveOfARunThatGoesOnFromTheLatest) {
  const std::string path = directory_ / "s";
  for (const int64_t step : {1, 2, 3}) SaveAs("a", step);
  const auto names = [&] {
    std::set<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      if (entry.is_directory()) found.insert(entry.path().filename());
    }
    return found;
  };
  {
    SaveDirectory save;
    // An earlier one is resumed: the later ones are no help to it.
    ASSERT_EQ(Prepare(save, path, {.id = "a", .resumed_from = path + "/step-00000002", .first_step = 2, .keep = 1}),
              absl::OkStatus());
    EXPECT_EQ(names().size(), 3u);
  }
  SaveDirectory save;
  ASSERT_EQ(Prepare(save, path, {.id = "a", .resumed_from = path + "/step-00000003", .first_step = 3, .keep = 2}),
            absl::OkStatus());
  EXPECT_EQ(names(), (std::set<std::string>{"step-00000002", "step-00000003"}));
}

// Ranks may be ended at any moment of their start.
TEST_F(SaveDirectoryTest, TakesNoHarmFromProbesThatAStartLeft) {
  const std::string path = directory_ / "s", probe = path + "/.probe-a";
  std::filesystem::create_directory(path);
  for (const bool is_directory : {false, true}) {
    if (is_directory) {
      std::filesystem::create_directory(probe);
    } else {
      WriteWholeFile(probe, "rank 0 was here");
    }
    SaveDirectory save;
    EXPECT_EQ(Prepare(save, path, {.id = "a"}), absl::OkStatus());
    EXPECT_FALSE(std::filesystem::exists(probe));
  }
}

TEST_F(SaveDirectoryTest, ALittleDiskIsANote) {
  SaveDirectory save;
  ASSERT_EQ(Prepare(save, directory_ / "s", {.id = "a", .checkpoint_bytes = uint64_t{1} << 60}), absl::OkStatus());
  EXPECT_THAT(notes_, ElementsAre(AllOf(HasSubstr("a checkpoint takes 1.15e+09 GB"), HasSubstr("has room for"))));
}

// Each rank has a disk of its own under the same name, as hosts do that share none.
TEST_F(SaveDirectoryTest, RanksThatDoNotShareItAreToldBeforeTheFirstStep) {
  std::filesystem::create_directory(directory_ / "other");
  const auto statuses = AsRanks(3, [&](Agreement& agreement, RankGroup&) {
    SaveDirectory save;
    return save.Prepare(directory_ / (agreement.rank() == 2 ? "other" : "s"), {.id = "a"}, agreement,
                        [](absl::string_view) {});
  });
  for (const absl::Status& status : statuses) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("rank 2: '"), HasSubstr("save into a directory that all ranks share")));
  }
  EXPECT_THAT(directory_.List(), ElementsAre("other"));
}

}  // namespace
}  // namespace bowline
