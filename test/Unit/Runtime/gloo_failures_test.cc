// Ranks as processes that are killed, stopped, never start, or leave: every survivor ends in time and names the cause.

#include <csignal>
#include <fstream>

#include "runtime/comm/agree.h"
#include "test/Unit/Runtime/process_fixture.h"

namespace bowline {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using testing::OptionsAtFile;
using testing::OptionsAtPort;
using testing::Outcome;
using testing::Processes;
using testing::RankProcess;
using testing::WithRank;

std::string TextOf(const Outcome& outcome) { return std::string(outcome.status.message()); }

// Much longer than a test takes; failures that are noticed at once must not need so long.
constexpr auto kPatient = std::chrono::minutes(5);

TEST(GlooProcesses, WorkTogether) {
  for (bool at_port : {false, true}) {
    Processes processes;
    const GlooOptions options = at_port ? OptionsAtPort(4, kPatient) : OptionsAtFile(4, kPatient);
    for (int rank = 0; rank < 4; ++rank) {
      processes.Fork([&, rank](RankProcess& self) -> absl::Status {
        BOWLINE_RETURN_IF_ERROR(self.Start(WithRank(options, rank)));
        BOWLINE_RETURN_IF_ERROR(AgreeOn(self.all->exchange(), {{"plan", "a"}}));
        for (size_t count : {1, 1000, 300007}) BOWLINE_RETURN_IF_ERROR(self.SumOnes(count));
        return self.Barrier();
      });
    }
    for (int rank = 0; rank < 4; ++rank) EXPECT_TRUE(processes.Wait(rank).status.ok());
    EXPECT_FALSE(std::ifstream(options.rendezvous.file).is_open()) << "left behind";
  }
}

TEST(GlooProcesses, WorkTogetherByIpv6) {
  if (const auto listener = Listen("::1", 0); !listener.ok()) GTEST_SKIP() << "no IPv6: " << listener.status();
  Processes processes;
  GlooOptions options = OptionsAtPort(2, kPatient);
  options.rendezvous.host = "::1";
  options.address.clear();
  for (int rank = 0; rank < 2; ++rank) {
    processes.Fork([&, rank](RankProcess& self) -> absl::Status {
      BOWLINE_RETURN_IF_ERROR(self.Start(WithRank(options, rank)));
      return self.SumOnes(1000);
    });
  }
  for (int rank = 0; rank < 2; ++rank) {
    const Outcome outcome = processes.Wait(rank);
    EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  }
}

TEST(GlooProcesses, DifferentPlansAreRefusedEverywhere) {
  Processes processes;
  const GlooOptions options = OptionsAtFile(3, kPatient);
  for (int rank = 0; rank < 3; ++rank) {
    processes.Fork([&, rank](RankProcess& self) -> absl::Status {
      BOWLINE_RETURN_IF_ERROR(self.Start(WithRank(options, rank)));
      return AgreeOn(self.all->exchange(), {{"hash of the plan", rank == 1 ? "12ab" : "77ff"}});
    });
  }
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_THAT(TextOf(processes.Wait(rank)),
                HasSubstr("do not agree on hash of the plan: rank 0 has '77ff', but rank 1 has '12ab'"));
  }
}

// All ranks sum without end, small vectors or such as take many messages, until one gets the signal.
void SumsUntil(int signal, int victim, size_t count, std::chrono::nanoseconds timeout, const std::string& cause) {
  SCOPED_TRACE(::testing::Message() << "signal " << signal << " to rank " << victim << ", " << count << " elements");
  constexpr int kRanks = 4;
  Processes processes;
  const GlooOptions options = OptionsAtFile(kRanks, timeout);
  for (int rank = 0; rank < kRanks; ++rank) {
    processes.Fork([&, rank](RankProcess& self) -> absl::Status {
      BOWLINE_RETURN_IF_ERROR(self.Start(WithRank(options, rank)));
      BOWLINE_RETURN_IF_ERROR(self.SumOnes(count));
      self.Tell();
      return self.SumForever(count);
    });
  }
  for (int rank = 0; rank < kRanks; ++rank) processes.WaitForTell(rank);
  processes.Signal(victim, signal);
  for (int rank = 0; rank < kRanks; ++rank) {
    if (rank == victim) continue;
    const Outcome outcome = processes.Wait(rank);
    EXPECT_EQ(outcome.status.code(), absl::StatusCode::kUnavailable) << outcome.status;
    EXPECT_THAT(TextOf(outcome), ContainsRegex(absl::StrCat("cause: rank ", victim, " \\(host .*, pid ",
                                                            processes.pid(victim), "\\) ", cause)));
    // Of a death a rank may learn between two operations.
    if (signal == SIGSTOP) {
      EXPECT_THAT(TextOf(outcome),
                  ContainsRegex(absl::StrCat("all_reduce\\(sum\\) of ", count, " f32 \\(operation [0-9]+ of ")));
    }
  }
  if (signal != SIGSTOP) return;
  // It learns that the others went on without it.
  processes.Signal(victim, SIGCONT);
  EXPECT_FALSE(processes.Wait(victim).status.ok());
}

TEST(GlooProcesses, AKilledRankIsNamedBeforeTheTimeout) {
  for (int victim : {0, 2}) {
    for (size_t count : {size_t{10}, size_t{3000000}}) {
      SumsUntil(SIGKILL, victim, count, kPatient, "died: its connection closed without a farewell");
    }
  }
}

TEST(GlooProcesses, AStoppedRankIsNamed) {
  for (int victim : {0, 2}) {
    SumsUntil(SIGSTOP, victim, victim == 0 ? 10 : 3000000, std::chrono::seconds(2), "did not answer for ");
  }
}

TEST(GlooProcesses, SaysWhoWaitsForTheDead) {
  for (int victim : {0, 2}) {
    const int other = 2 - victim;
    Processes processes;
    const GlooOptions options = OptionsAtFile(3, kPatient);
    for (int rank = 0; rank < 3; ++rank) {
      processes.Fork([&, rank](RankProcess& self) -> absl::Status {
        BOWLINE_RETURN_IF_ERROR(self.Start(WithRank(options, rank)));
        self.Tell();
        float value = 0;
        if (rank == other) {
          return self.Finish(self.all->Receive(*self.stream, {{nullptr, &value, 1}}, kernels::DType::kF32, victim));
        }
        if (rank == 1) return self.Barrier();
        ::pause();
        return absl::OkStatus();
      });
    }
    for (int rank : {0, 1, 2}) processes.WaitForTell(rank);
    // In their operations, which they cannot tell from inside.
    for (int rank : {0, 1, 2}) processes.WaitForSleep(rank);
    processes.Signal(victim, SIGKILL);
    const auto receive =
        HasSubstr(absl::StrCat("rank ", other, " waits for rank ", victim, " in receive of 1 f32 from rank ", victim,
                               " (operation 0 of communicator 'all')"));
    const auto cause = HasSubstr(absl::StrCat("; cause: rank ", victim, " (host "));
    const Outcome of_other = processes.Wait(other), of_1 = processes.Wait(1);
    EXPECT_THAT(TextOf(of_other), AllOf(receive, cause));
    EXPECT_THAT(TextOf(of_1), cause);
    if (victim == 0) {
      // Without the hub each knows of itself alone, and of those that it waits for the next.
      EXPECT_THAT(TextOf(of_1), ContainsRegex("rank 1 waits for rank [02] in barrier \\(operation 0 of "));
    } else {
      EXPECT_THAT(
          TextOf(of_1),
          AllOf(receive, HasSubstr("rank 1 waits for ranks 0, 2 in barrier (operation 0 of communicator 'all')")));
      EXPECT_EQ(of_1.status, of_other.status);
    }
  }
}

TEST(GlooProcesses, ARankThatDiesWhileOthersCreateACommunicatorIsNamed) {
  Processes processes;
  const GlooOptions options = OptionsAtFile(3, kPatient);
  for (int rank = 0; rank < 3; ++rank) {
    processes.Fork([&, rank](RankProcess& self) -> absl::Status {
      BOWLINE_RETURN_IF_ERROR(self.Start(WithRank(options, rank)));
      self.Tell();
      if (rank == 2) ::pause();
      return self.group->CreateExchange("second", {0, 1, 2}).status();
    });
  }
  for (int rank : {0, 1, 2}) processes.WaitForTell(rank);
  for (int rank : {0, 1, 2}) processes.WaitForSleep(rank);
  processes.Signal(2, SIGKILL);
  for (int rank : {0, 1}) {
    EXPECT_THAT(TextOf(processes.Wait(rank)),
                AllOf(HasSubstr("rank 0 waits for rank 2 in the creation of communicator 'second'"),
                      HasSubstr("rank 1 waits for rank 2 in the creation of communicator 'second'"),
                      HasSubstr("; cause: rank 2 (host ")));
  }
}

TEST(GlooProcesses, ARankThatLeavesEarlyIsNamed) {
  Processes processes;
  const GlooOptions options = OptionsAtFile(3, std::chrono::seconds(3));
  for (int rank = 0; rank < 3; ++rank) {
    processes.Fork([&, rank](RankProcess& self) -> absl::Status {
      BOWLINE_RETURN_IF_ERROR(self.Start(WithRank(options, rank)));
      return rank == 1 ? absl::OkStatus() : self.Barrier();
    });
  }
  for (int rank : {0, 2}) {
    EXPECT_THAT(TextOf(processes.Wait(rank)), ContainsRegex("cause: rank 1 .* left the group before the others"));
  }
  EXPECT_TRUE(processes.Wait(1).status.ok());
}

TEST(GlooProcesses, RanksThatDoNotStartAreNamed) {
  Processes processes;
  for (bool at_port : {false, true}) {
    GlooOptions options = at_port ? OptionsAtPort(5, kPatient) : OptionsAtFile(5, kPatient);
    options.rendezvous_timeout = std::chrono::seconds(1);
    std::vector<int> started;
    for (int rank : {0, 1, 3}) {
      started.push_back(processes.Fork([&, rank](RankProcess& self) { return self.Start(WithRank(options, rank)); }));
    }
    for (int process : started) {
      EXPECT_THAT(TextOf(processes.Wait(process)), HasSubstr("rendezvous: ranks 2, 4 of 5 did not come within 1 s"));
    }
  }
}

TEST(GlooProcesses, RankZeroThatDoesNotStartIsNamed) {
  Processes processes;
  for (bool at_port : {false, true}) {
    GlooOptions options = at_port ? OptionsAtPort(3, kPatient) : OptionsAtFile(3, kPatient);
    options.rendezvous_timeout = std::chrono::seconds(1);
    const int process = processes.Fork([&](RankProcess& self) { return self.Start(WithRank(options, 2)); });
    EXPECT_THAT(TextOf(processes.Wait(process)),
                AllOf(HasSubstr("rank 2 did not find rank 0 at " + options.rendezvous.ToString()),
                      HasSubstr(at_port ? "Connection refused" : "rank 0 has not written it")));
  }
}

TEST(GlooProcesses, AStopOfAllIsNoFailure) {
  Processes processes;
  const GlooOptions options = OptionsAtFile(3, std::chrono::seconds(3));
  for (int rank = 0; rank < 3; ++rank) {
    processes.Fork([&, rank](RankProcess& self) -> absl::Status {
      BOWLINE_RETURN_IF_ERROR(self.Start(WithRank(options, rank)));
      self.Tell();
      // Half of the time in an operation that waits.
      if (rank == 0) std::this_thread::sleep_for(std::chrono::milliseconds(500));
      BOWLINE_RETURN_IF_ERROR(self.SumOnes(1000));
      return self.Barrier();
    });
  }
  for (int rank : {0, 1, 2}) processes.WaitForTell(rank);
  for (int rank : {0, 1, 2}) processes.Signal(rank, SIGSTOP);
  std::this_thread::sleep_for(std::chrono::seconds(6));
  for (int rank : {0, 1, 2}) processes.Signal(rank, SIGCONT);
  for (int rank : {0, 1, 2}) EXPECT_TRUE(processes.Wait(rank).status.ok());
}

}  // namespace
}  // namespace bowline
