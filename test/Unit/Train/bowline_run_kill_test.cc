// Runs that are killed or asked to stop, at any instant, also while they save.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "test/Support/test_seed.h"
#include "test/Unit/Train/run_fixture.h"

extern char** environ;

namespace bowline {
namespace {

using ::testing::HasSubstr;

class BowlineRunKillTest : public RunFixture {
 protected:
  // The command in a process of its own.
  pid_t Start(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), BOWLINE_RUN_TOOL);
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    pid_t child = -1;
    // The test may run under nohup.
    posix_spawnattr_t attributes;
    sigset_t defaults;
    ::posix_spawnattr_init(&attributes);
    ::sigemptyset(&defaults);
    for (const int signal : defaults_) ::sigaddset(&defaults, signal);
    ::posix_spawnattr_setsigdefault(&attributes, &defaults);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    EXPECT_EQ(::posix_spawn(&child, argv[0], nullptr, &attributes, argv.data(), environ), 0);
    ::posix_spawnattr_destroy(&attributes);
    return child;
  }

  // Metrics of the run that was killed. One that was killed behind its last save, and goes on, evaluates at its end.
  std::vector<nlohmann::json> MetricsOfKilled(int64_t steps) const {
    std::vector<nlohmann::json> lines = TimelessMetrics("killed.jsonl");
    if (steps % 7 != 0 && lines.back().contains("eval_loss") && lines.back()["step"] == steps) lines.pop_back();
    return lines;
  }

  std::vector<std::string> TrainArguments(int64_t steps, const std::string& save, const std::string& metrics) {
    return {directory_ / "x.plan",
            "--data",
            directory_ / "d.bin",
            "--order",
            "shuffle",
            "--steps",
            std::to_string(steps),
            "--eval-data",
            directory_ / "d.bin",
            "--eval-every",
            "7",
            "--save",
            directory_ / save,
            "--save-every",
            "1",
            "--keep",
            "3",
            "--metrics",
            directory_ / metrics,
            "--quiet"};
  }

  std::vector<int> defaults_ = {SIGHUP};

  int Wait(pid_t child) {
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return status;
  }
};

// A run may be killed between its first checkpoint and the file `latest`.
bool HasCheckpoint(const std::string& directory) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    if (entry.path().filename().string().starts_with("step-")) return true;
  }
  return false;
}

TEST_F(BowlineRunKillTest, KilledAgainAndAgainItGivesTheMetricsOfOneRun) {
  constexpr int64_t kSteps = 80;
  ASSERT_EQ(Wait(Start(TrainArguments(kSteps, "whole", "whole.jsonl"))), 0);
  std::mt19937 random(TestSeed());
  // A run that comes to its end before it is killed tries nothing: its lives were too long for this machine.
  int kills = 0;
  for (int64_t longest_us = 100'000; kills == 0; longest_us = longest_us / 2 + 1) {
    std::filesystem::remove_all(directory_ / "killed");
    std::filesystem::remove(directory_ / "killed.jsonl");
    int status = -1;
    // Lives become longer, so that a slow machine gets somewhere too, and the last one ends by itself; with a save per
    // step, most end inside of one.
    for (int lives = 0; status != 0; ++lives) {
      std::vector<std::string> arguments = TrainArguments(kSteps, "killed", "killed.jsonl");
      if (HasCheckpoint(directory_ / "killed")) {
        arguments.insert(arguments.end(), {"--resume", directory_ / "killed"});
      } else {
        std::filesystem::remove(directory_ / "killed.jsonl");
      }
      const pid_t child = Start(arguments);
      if (lives < 200) {
        const int64_t range_us = longest_us * (5 + lives) / 5;
        std::this_thread::sleep_for(std::chrono::microseconds(longest_us / 5 + random() % (range_us + 1)));
        ::kill(child, SIGKILL);
      }
      status = Wait(child);
      if (WIFSIGNALED(status)) ++kills;
      ASSERT_TRUE(status == 0 || WIFSIGNALED(status)) << "exit code " << WEXITSTATUS(status);
    }
  }
  EXPECT_EQ(TimelessMetrics("whole.jsonl").size(), static_cast<size_t>(kSteps + kSteps / 7));
  EXPECT_THAT(MetricsOfKilled(kSteps), ::testing::ElementsAreArray(TimelessMetrics("whole.jsonl")));
  EXPECT_EQ(ReadWholeFile(directory_ / "whole/step-00000080/model.safetensors"),
            ReadWholeFile(directory_ / "killed/step-00000080/model.safetensors"));
}

// The process that --restarts started, of which there may be none at the moment.
std::vector<pid_t> ChildrenOf(pid_t process) {
  std::vector<pid_t> children;
  const std::string id = std::to_string(process);
  std::ifstream file("/proc/" + id + "/task/" + id + "/children");
  for (pid_t child = 0; file >> child;) children.push_back(child);
  return children;
}

TEST_F(BowlineRunKillTest, RestartedAgainAndAgainItGivesTheMetricsOfOneRun) {
  constexpr int64_t kSteps = 40;
  ASSERT_EQ(Wait(Start(TrainArguments(kSteps, "whole", "whole.jsonl"))), 0);
  std::mt19937 random(TestSeed());
  // As above: the run has to be killed at least once.
  int kills = 0;
  for (int64_t longest_us = 100'000; kills == 0; longest_us = longest_us / 2 + 1) {
    std::filesystem::remove_all(directory_ / "killed");
    std::filesystem::remove(directory_ / "killed.jsonl");
    std::vector<std::string> arguments = TrainArguments(kSteps, "killed", "killed.jsonl");
    arguments.insert(arguments.end(), {"--restarts", "1000"});
    const pid_t run = Start(arguments);
    int status = 0;
    for (int lives = 0; ::waitpid(run, &status, lives < 200 ? WNOHANG : 0) == 0; ++lives) {
      const int64_t range_us = longest_us * (5 + lives) / 5;
      std::this_thread::sleep_for(std::chrono::microseconds(longest_us / 5 + random() % (range_us + 1)));
      for (const pid_t child : ChildrenOf(run)) kills += ::kill(child, SIGKILL) == 0 ? 1 : 0;
    }
    ASSERT_TRUE(WIFEXITED(status)) << status;
    ASSERT_EQ(WEXITSTATUS(status), 0);
  }
  EXPECT_EQ(TimelessMetrics("whole.jsonl").size(), static_cast<size_t>(kSteps + kSteps / 7));
  EXPECT_THAT(MetricsOfKilled(kSteps), ::testing::ElementsAreArray(TimelessMetrics("whole.jsonl")));
  EXPECT_EQ(ReadWholeFile(directory_ / "whole/step-00000040/model.safetensors"),
            ReadWholeFile(directory_ / "killed/step-00000040/model.safetensors"));
}

TEST_F(BowlineRunKillTest, RestartsEndWithTheSignalThatStopsTheRun) {
  std::vector<std::string> arguments = TrainArguments(100'000'000, "s", "m.jsonl");
  arguments.insert(arguments.end(), {"--restarts", "1000"});
  const pid_t run = Start(arguments);
  while (!std::filesystem::exists(directory_ / "s/latest")) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ASSERT_EQ(::kill(run, SIGTERM), 0);
  const int status = Wait(run);
  ASSERT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 75);
  // The last checkpoint is that of the last step in the metrics.
  EXPECT_THAT(ReadWholeFile(directory_ / "s/latest"),
              HasSubstr(std::to_string(Metrics("m.jsonl").back()["step"].get<int64_t>())));
}

TEST_F(BowlineRunKillTest, ASignalFinishesTheStepAndSaves) {
  for (int signal : {SIGTERM, SIGINT, SIGUSR1, SIGHUP}) {
    const std::string name = "stopped" + std::to_string(signal), whole = "whole" + std::to_string(signal);
    // More steps than it comes to before the signal, however late that is.
    const pid_t child = Start(TrainArguments(100'000'000, name, name + ".jsonl"));
    while (!std::filesystem::exists(directory_ / (name + "/latest"))) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ASSERT_EQ(::kill(child, signal), 0);
    const int status = Wait(child);
    ASSERT_TRUE(WIFEXITED(status)) << status;
    ASSERT_EQ(WEXITSTATUS(status), 75);
    const auto steps = static_cast<int64_t>(Metrics(name + ".jsonl").size()) + 20;
    std::vector<std::string> arguments = TrainArguments(steps, name, name + ".jsonl");
    arguments.insert(arguments.end(), {"--resume", directory_ / name});
    ASSERT_EQ(Wait(Start(arguments)), 0);
    ASSERT_EQ(Wait(Start(TrainArguments(steps, whole, whole + ".jsonl"))), 0);
    EXPECT_EQ(TimelessMetrics(whole + ".jsonl"), TimelessMetrics(name + ".jsonl"));
  }
}

// As under nohup, which has the command ignore it.
TEST_F(BowlineRunKillTest, AnIgnoredHangupStaysIgnored) {
  defaults_.clear();
  const auto before = std::signal(SIGHUP, SIG_IGN);
  const pid_t child = Start(TrainArguments(100'000'000, "s", "m.jsonl"));
  std::signal(SIGHUP, before);
  while (!std::filesystem::exists(directory_ / "s/latest")) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ASSERT_EQ(::kill(child, SIGHUP), 0);
  const std::string first = ReadWholeFile(directory_ / "s/latest");
  while (ReadWholeFile(directory_ / "s/latest") == first) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ASSERT_EQ(::kill(child, SIGTERM), 0);
  const int status = Wait(child);
  ASSERT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 75);
}

TEST_F(BowlineRunKillTest, ASecondSignalEndsItAtOnce) {
  const pid_t child = Start(TrainArguments(100'000'000, "s", "m.jsonl"));
  while (!std::filesystem::exists(directory_ / "s/latest")) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  // Both are there when it wakes up, so that no step can end between them.
  ASSERT_EQ(::kill(child, SIGSTOP), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
  ASSERT_EQ(::kill(child, SIGUSR1), 0);
  ASSERT_EQ(::kill(child, SIGTERM), 0);
  ASSERT_EQ(::kill(child, SIGCONT), 0);
  status = Wait(child);
  EXPECT_TRUE(WIFSIGNALED(status)) << status;
}

}  // namespace
}  // namespace bowline
