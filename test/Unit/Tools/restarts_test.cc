// Which ends of a run start it again, from where, and how often. The ranks are this program, see spawn_test.cc.

#include "runtime/tools/restarts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "test/Unit/Base/temp_directory.h"

namespace bowline {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class Restarts : public ::testing::Test {
 protected:
  // Each start makes the file `starts` longer.
  int Run(int ranks, int restarts, const std::string& actions, const std::string& resumed,
          const std::vector<std::string>& others = {}) {
    const std::string count = absl::StrCat("0=touch:", directory_ / "starts", ",");
    SpawnOptions options = {"spawn-test", ranks, others};
    options.arguments.push_back(count + actions);
    RestartOptions restart = {.restarts = restarts,
                              .save_every = save_every_,
                              .metrics = directory_ / "metrics",
                              .save = directory_.path(),
                              .resumed = others,
                              .begin = "step 0"};
    restart.resumed.push_back(count + resumed);
    ::testing::internal::CaptureStderr();
    const absl::StatusOr<int> code = SpawnWithRestarts(options, restart);
    err_ = ::testing::internal::GetCapturedStderr();
    EXPECT_TRUE(code.ok()) << code.status();
    return code.value_or(-1);
  }

  int Starts() const { return static_cast<int>(std::filesystem::file_size(directory_ / "starts")); }

  TempDirectory directory_;
  int64_t save_every_ = 10;
  std::string err_;
};

TEST_F(Restarts, GoOnWithTheCheckpointThatTheRunSaved) {
  const std::string save = absl::StrCat("save:", directory_.path());
  // Rank 1 lives until the ranks of the second start have met.
  const std::string met = directory_ / "met";
  EXPECT_EQ(Run(2, 3, absl::StrCat("meet,train,", save, ",", save, ",signal:", SIGKILL),
                absl::StrCat("meet,touch:", met, ",exit:0"), {absl::StrCat("1=await:", met)}),
            0);
  EXPECT_EQ(Starts(), 2);
  EXPECT_THAT(err_, ContainsRegex("spawn-test: note: rank 0 \\(pid [0-9]+\\) was ended by signal 9 \\(Killed\\); "
                                  "restart 1 of 3, from step 20\n$"));
}

TEST_F(Restarts, BeginAsAtFirstWithoutACheckpointOfTheRun) {
  // Another run saved it.
  std::ofstream(directory_ / "latest") << "step-00000070\n";
  const std::string done = directory_ / "done";
  EXPECT_EQ(Run(1, 3, absl::StrCat("train,finish:", done, ",touch:", done, ",exit:3"), "exit:1"), 0);
  EXPECT_EQ(Starts(), 2);
  EXPECT_THAT(err_, HasSubstr(") ended with exit code 3; restart 1 of 3, from step 0\n"));
}

TEST_F(Restarts, AreCountedWhileNoCheckpointIsSaved) {
  EXPECT_EQ(Run(1, 2, "train,exit:3", "exit:0"), 3);
  EXPECT_EQ(Starts(), 3);
  EXPECT_THAT(err_, AllOf(HasSubstr("restart 1 of 2, from step 0\n"), HasSubstr("restart 2 of 2, from step 0\n"),
                          ContainsRegex("error: rank 0 \\(pid [0-9]+\\) ended with exit code 3; given up after 3 "
                                        "failures in a row without progress\n$")));
}

TEST_F(Restarts, ANewCheckpointStartsTheCountAgain) {
  const std::string save = absl::StrCat("save:", directory_.path());
  const std::string finish = absl::StrCat("finish:", directory_ / "step-00000050");
  EXPECT_EQ(Run(1, 1, absl::StrCat("train,", save, ",exit:3"), absl::StrCat("train,", save, ",", finish, ",exit:3")),
            0);
  EXPECT_EQ(Starts(), 5);
  EXPECT_THAT(err_, AllOf(HasSubstr("restart 1 of 1, from step 10\n"), HasSubstr("restart 1 of 1, from step 40\n")));
}

// Each failure may save the last step, as a failing run does.
TEST_F(Restarts, AreCountedWhileNoCheckpointIsDue) {
  const std::string train = absl::StrCat("train,save:", directory_.path(), ",exit:3");
  for (const int64_t save_every : {0, 1000}) {
    save_every_ = save_every;
    std::filesystem::remove(directory_ / "starts");
    std::filesystem::remove(directory_ / "latest");
    EXPECT_EQ(Run(1, 2, train, train), 3);
    EXPECT_EQ(Starts(), 3);
    EXPECT_THAT(err_, AllOf(HasSubstr("restart 1 of 2, from step 10\n"), HasSubstr("restart 2 of 2, from step 20\n"),
                            HasSubstr("given up after 3 failures in a row without progress")));
  }
}

// One of the checkpoints between two failures was due, though the latest was not.
TEST_F(Restarts, ADueCheckpointStartsTheCountAgain) {
  save_every_ = 15;
  const std::string save = absl::StrCat("save:", directory_.path());
  const std::string finish = absl::StrCat("finish:", directory_ / "step-00000050");
  EXPECT_EQ(Run(1, 1, absl::StrCat("train,", save, ",", save, ",exit:3"),
                absl::StrCat("train,", save, ",", save, ",", finish, ",exit:3")),
            0);
  EXPECT_THAT(err_, AllOf(HasSubstr("restart 1 of 1, from step 20\n"), HasSubstr("restart 1 of 1, from step 40\n")));
}

TEST_F(Restarts, ThatBeginAgainBeginTheMetricsAgain) {
  std::ofstream(directory_ / "metrics") << "a line\n";
  EXPECT_EQ(Run(1, 1, "exit:3", "exit:0"), 3);
  EXPECT_EQ(std::filesystem::file_size(directory_ / "metrics"), 7);  // not the run's: it did not train
  EXPECT_EQ(Run(1, 1, absl::StrCat("train,save:", directory_.path(), ",exit:3"), "exit:0"), 0);
  EXPECT_EQ(std::filesystem::file_size(directory_ / "metrics"), 7);
  EXPECT_EQ(Run(1, 1, "train,exit:3", "exit:0"), 3);
  EXPECT_EQ(std::filesystem::file_size(directory_ / "metrics"), 0);
}

TEST_F(Restarts, AreForErrorsOnceTheRunTrains) {
  EXPECT_EQ(Run(1, 1, absl::StrCat("train,save:", directory_.path(), ",say:no such file,exit:1"), "exit:0"), 0);
  EXPECT_THAT(err_, AllOf(HasSubstr("[rank 0] spawn-test: error: no such file\n"),
                          HasSubstr(") ended with exit code 1; restart 1 of 1, from step 10\n")));
}

TEST_F(Restarts, AreForARunOfOneProcessToo) {
  EXPECT_EQ(Run(0, 1, absl::StrCat("train,save:", directory_.path(), ",say:why,signal:", SIGKILL), "exit:0"), 0);
  EXPECT_EQ(Starts(), 2);
  EXPECT_THAT(err_, ContainsRegex("^spawn-test: error: why\nspawn-test: error: the run \\(pid [0-9]+\\) was ended by "
                                  "signal 9 \\(Killed\\)\nspawn-test: note: the run \\(pid [0-9]+\\) was ended by "
                                  "signal 9 \\(Killed\\); restart 1 of 1, from step 10\n$"));
}

TEST_F(Restarts, AreForARankThatGoesBeforeAllHaveMet) {
  EXPECT_EQ(Run(2, 1, "hang", "exit:1", {"1=exit:0"}), 3);
  EXPECT_THAT(err_, AllOf(HasSubstr(") ended with exit code 0 before all ranks had met; restart 1 of 1, from step 0\n"),
                          HasSubstr("; given up after 2 failures in a row")));
}

TEST_F(Restarts, AreNotForWhatWouldEndInTheSameWay) {
  int starts = 0;
  for (const char* actions : {"exit:1", "exit:2", "train,exit:4", "exit:4"}) {
    Run(1, 5, actions, "exit:0");
    EXPECT_EQ(Starts(), ++starts) << actions;
    EXPECT_THAT(err_, HasSubstr("note: not restarted")) << actions;
  }
  for (const char* actions : {"train,exit:0", "train,exit:75"}) {
    Run(1, 5, actions, "exit:0");
    EXPECT_EQ(Starts(), ++starts) << actions;
    EXPECT_EQ(err_, "") << actions;
  }
}

}  // namespace
}  // namespace bowline
