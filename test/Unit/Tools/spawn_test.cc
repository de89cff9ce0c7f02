// Ranks that SpawnRanks starts and that end before all have met, or after. This program is the rank too, also for
// restarts_test.cc: its arguments choose its actions.

#include "runtime/tools/spawn.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "runtime/tools/stop_signals.h"
#include "test/Unit/Base/temp_directory.h"

namespace bowline {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// Makes a checkpoint, an empty one, of ten steps after the latest, which it replaces as that.
void Save(const std::string& directory) {
  const std::string path = absl::StrCat(directory, "/latest"), aside = absl::StrCat(path, ".new");
  int step = 0;
  if (std::ifstream old(path); old.good()) {
    old.ignore(sizeof("step-") - 1);
    old >> step;
  }
  const std::string name = absl::StrFormat("step-%08d", step + 10);
  std::filesystem::create_directory(absl::StrCat(directory, "/", name));
  std::ofstream(aside) << name << "\n";
  std::filesystem::rename(aside, path);
}

// One thing that a rank does: "meet", "train", "save:DIRECTORY", "exit:7", "signal:9", "say:TEXT", "touch:FILE", which
// makes it a byte longer, "await:FILE", "finish:FILE", which exits with 0 if there is the file, or "hang".
void Do(const SpawnedRank& self, absl::string_view action) {
  const std::vector<std::string> parts = absl::StrSplit(action, absl::MaxSplits(':', 1));
  const std::string argument = parts.size() > 1 ? parts[1] : "";
  int number = 0;
  const bool is_number = absl::SimpleAtoi(argument, &number);
  if (parts[0] == "meet") Report(self, SpawnReport::kAllMet);
  if (parts[0] == "train") Report(self, SpawnReport::kTraining);
  if (parts[0] == "save") Save(argument);
  if (parts[0] == "finish" && std::filesystem::exists(argument)) ::_exit(0);
  if (parts[0] == "exit" && is_number) ::_exit(number);
  if (parts[0] == "ask" && is_number) {
    EndOnStopSignals();
    ::kill(::getppid(), number);
  }
  if (parts[0] == "signal" && is_number) ::raise(number);
  if (parts[0] == "say") std::fprintf(stderr, "spawn-test: error: %s\n", argument.c_str());
  if (parts[0] == "touch") std::ofstream(argument, std::ios::app).put('\n');
  while (parts[0] == "await" && !std::filesystem::exists(argument)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  while (parts[0] == "hang" || parts[0] == "ask") ::pause();
}

// `arguments`: "--rank" and its number, ..., then "0=ACTION,ACTION", "1=...". Without a rank it is 0.
int BeRank(const SpawnedRank& self, const std::vector<std::string>& arguments) {
  const std::string own = absl::StrCat(arguments.at(0) == "--rank" ? arguments.at(1) : "0", "=");
  for (absl::string_view argument : arguments) {
    if (!absl::ConsumePrefix(&argument, own)) continue;
    for (const absl::string_view action : absl::StrSplit(argument, ',')) Do(self, action);
  }
  return 0;
}

struct Ended {
  int exit_code = -1;
  std::string err;
};

Ended Spawn(int ranks, const std::vector<std::string>& actions) {
  ::testing::internal::CaptureStderr();
  const absl::StatusOr<int> code = SpawnRanks("spawn-test", ranks, actions);
  Ended ended = {code.value_or(-1), ::testing::internal::GetCapturedStderr()};
  EXPECT_TRUE(code.ok()) << code.status();
  return ended;
}

// A message of several lines, which all ranks have, is printed once and in order, though lines of others come between.
TEST(SpawnTest, MessagesOfSeveralLinesStayWhole) {
  const std::string text = "say:head\n  setting  here\n  lr       1\nadvice";
  const Ended both = Spawn(2, {absl::StrCat("0=meet,", text, ",exit:1"), absl::StrCat("1=meet,", text, ",exit:1")});
  EXPECT_EQ(both.exit_code, 1);
  EXPECT_THAT(both.err, HasSubstr("spawn-test: error: head\n  setting  here\n  lr       1\nadvice\n"));
  EXPECT_THAT(both.err, Not(HasSubstr("]   setting")));
  EXPECT_EQ(both.err.find("advice"), both.err.rfind("advice"));
}

// The others would wait for ever; each of the tests ends because they are ended.

TEST(Spawn, ARankThatExitsWithoutAnErrorBeforeAllHaveMetEndsTheOthers) {
  for (const std::vector<std::string>& actions :
       {std::vector<std::string>{"0=exit:0", "1=hang", "2=hang"}, {"0=hang", "1=hang", "2=exit:0"}}) {
    const Ended ended = Spawn(3, actions);
    EXPECT_EQ(ended.exit_code, 3);
    EXPECT_THAT(ended.err, ContainsRegex(R"(^spawn-test: error: rank [02] \(pid [0-9]+\) ended with exit code 0 )"
                                         "before all ranks had met\n$"));
  }
}

TEST(Spawn, TheExitCodeOfARankThatFailsBeforeAllHaveMetIsKept) {
  Ended ended = Spawn(2, {"0=hang", "1=exit:7"});
  EXPECT_EQ(ended.exit_code, 7);
  EXPECT_THAT(ended.err, HasSubstr(") ended with exit code 7 before all ranks had met\n"));
  // The rank's own error is the one that counts.
  ended = Spawn(2, {"0=hang", "1=say:no such device,exit:3"});
  EXPECT_EQ(ended.exit_code, 3);
  EXPECT_THAT(ended.err,
              AllOf(ContainsRegex("^spawn-test: note: rank 1 \\(pid [0-9]+\\) ended with exit code 3 before"),
                    HasSubstr("[rank 1] spawn-test: error: no such device\n")));
}

TEST(Spawn, ARankThatIsKilledBeforeAllHaveMetEndsTheOthers) {
  const Ended ended = Spawn(2, {absl::StrCat("0=signal:", SIGKILL), "1=hang"});
  EXPECT_EQ(ended.exit_code, 3);
  EXPECT_THAT(ended.err, ContainsRegex(R"(^spawn-test: error: rank 0 \(pid [0-9]+\) was ended by signal 9 \(Killed\) )"
                                       "before all ranks had met\n$"));
}

TEST(Spawn, ARankThatStaysStoppedBeforeAllHaveMetEndsTheOthers) {
  const Ended ended = Spawn(3, {"0=hang", absl::StrCat("1=signal:", SIGSTOP), "2=hang"});
  EXPECT_EQ(ended.exit_code, 3);
  EXPECT_THAT(ended.err, ContainsRegex(R"(error: rank 1 \(pid [0-9]+\) was stopped by signal 19 \(Stopped )"
                                       R"(\(signal\)\) before all ranks had met, and did not go on)"));
}

TEST(Spawn, AfterTheMeetingARankMayEndBeforeTheOthers) {
  const TempDirectory directory;
  const std::string met = directory / "met", left = directory / "left";
  const Ended ended = Spawn(2, {absl::StrCat("0=meet,touch:", met, ",await:", left),
                                absl::StrCat("1=await:", met, ",touch:", left, ",exit:0")});
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_EQ(ended.err, "");
}

// No other rank is left to find that it does not answer.
TEST(Spawn, ARankThatStaysStoppedWhenAllOthersHaveEndedIsEnded) {
  const TempDirectory directory;
  const std::string met = directory / "met";
  const Ended ended =
      Spawn(3, {absl::StrCat("0=meet,touch:", met, ",exit:0"), absl::StrCat("1=await:", met, ",signal:", SIGSTOP),
                absl::StrCat("2=await:", met, ",exit:0")});
  EXPECT_EQ(ended.exit_code, 3);
  EXPECT_THAT(ended.err, ContainsRegex(R"(error: rank 1 \(pid [0-9]+\) was stopped by signal 19 \(Stopped )"
                                       R"(\(signal\)\), and did not go on when all others had ended)"));
}

TEST(Spawn, AfterTheMeetingTheOthersMaySayWhatTheyWaitedFor) {
  const TempDirectory directory;
  const std::string met = directory / "met", go = directory / "go";
  // However soon rank 1 dies, nobody ends the others before they have spoken.
  const Ended ended = Spawn(3, {absl::StrCat("0=meet,touch:", met, ",await:", go, ",say:waited for 1,exit:3"),
                                absl::StrCat("1=await:", met, ",touch:", go, ",signal:", SIGKILL),
                                absl::StrCat("2=await:", go, ",say:waited for 1,exit:3")});
  EXPECT_EQ(ended.exit_code, 3);
  EXPECT_THAT(ended.err, AllOf(HasSubstr("[ranks 0, 2] spawn-test: error: waited for 1\n"),
                               Not(HasSubstr("before all ranks had met"))));
}

TEST(Spawn, EveryStopSignalIsPassedOn) {
  std::signal(SIGHUP, SIG_DFL);  // a test under nohup ignores it
  for (const int signal : kStopSignals) {
    EXPECT_EQ(Spawn(1, {absl::StrCat("0=meet,ask:", signal)}).exit_code, kStoppedExitCode) << signal;
  }
}

TEST(Spawn, OneRankHasNobodyToMeet) {
  EXPECT_EQ(Spawn(1, {"0=exit:0"}).exit_code, 0);
  EXPECT_EQ(Spawn(1, {"0=exit:5"}).exit_code, 5);
}

}  // namespace
}  // namespace bowline

int main(int argc, char** argv) {
  if (const auto self = bowline::FromSpawner(); self.has_value()) {
    return bowline::BeRank(*self, std::vector<std::string>(argv + 1, argv + argc));
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
