#include "kernels/cpu/parallel/team.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <memory>
#include <thread>
#include <vector>

namespace bowline::kernels {
namespace {

using namespace std::chrono_literals;

// Waits for an action of another thread; returns whether it happened in time.
template <typename Condition>
bool Await(const Condition& condition) {
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

std::vector<int> Hits(Team& team, int members, const Division& chunks) {
  std::vector<std::atomic<int>> hits(static_cast<size_t>(chunks.extent));
  team.Run(members, chunks, [&](int, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) ++hits[static_cast<size_t>(i)];
  });
  return {hits.begin(), hits.end()};
}

TEST(Division, PartsAreSideBySideAndDifferByOne) {
  const Division division = {10, 4};
  const int64_t begins[] = {0, 3, 6, 8, 10};
  for (int part = 0; part <= 4; ++part) EXPECT_EQ(division.Begin(part), begins[part]);
}

TEST(Team, RunsEveryIndexOnceForAnyMembersAndChunks) {
  Team team(5);
  for (int members = 1; members <= 5; ++members) {
    for (int chunks : {1, 2, 3, 5, 17, 100}) {
      EXPECT_EQ(Hits(team, members, {100, chunks}), std::vector<int>(100, 1)) << members << ", " << chunks;
    }
  }
  EXPECT_EQ(Hits(team, 5, {Team::kMostChunks, Team::kMostChunks}), std::vector<int>(Team::kMostChunks, 1));
}

TEST(Team, ManyShortRegionsInARow) {
  Team team(3);
  int64_t sums[12] = {};
  constexpr int kRegions = 20000;
  for (int region = 0; region < kRegions; ++region) {
    // Not atomic: each region sees the sums of the region before, whichever thread wrote them.
    team.Run(3, {12, 12}, [&](int, int64_t begin, int64_t) { sums[begin] += region; });
  }
  for (int64_t sum : sums) EXPECT_EQ(sum, int64_t{kRegions} * (kRegions - 1) / 2);
}

// Chunks that wait for each other end only if each member comes, from sleep or not.
TEST(Team, HelpersComeAlsoWhenTheySlept) {
  Team team(3);
  for (auto pause : {0us, 20us, 49us, 50us, 51us, 60us, 100us, 1000us, 5000us}) {
    for (int i = 0; i < 10; ++i) {
      std::this_thread::sleep_for(pause);
      std::atomic<int> arrived = 0;
      team.Run(3, {3, 3}, [&](int, int64_t, int64_t) {
        ++arrived;
        EXPECT_TRUE(Await([&] { return arrived == 3; }));
      });
    }
  }
}

TEST(Team, AHelperThatIsHeldUpHoldsUpNothingButItsChunk) {
  Team team(2);
  std::atomic<bool> helper_has_a_chunk = false;
  std::atomic<int> others = 0;
  team.Run(2, {16, 16}, [&](int member, int64_t, int64_t) {
    if (member == 1 && !helper_has_a_chunk.exchange(true)) {
      EXPECT_TRUE(Await([&] { return others == 15; })) << "the caller waits with chunks left";
      return;
    }
    if (member == 0) EXPECT_TRUE(Await([&] { return helper_has_a_chunk.load(); }));
    ++others;
  });
  EXPECT_EQ(others, 15);
}

// So threads of a process that were never started, or that a fork left behind, are missed by nobody.
TEST(Team, TheCallerDoesAllIfNoHelperComes) {
  auto team = std::make_unique<Team>(4);
  Hits(*team, 4, {8, 8});
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(60);  // a wait for threads that are not there would have no end
    const bool all = Hits(*team, 4, {100, 16}) == std::vector<int>(100, 1);
    team.reset();
    _exit(all ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(Hits(*team, 4, {8, 8}), std::vector<int>(8, 1));
}

TEST(Team, EndsWhileHelpersSpinAndWhileTheySleep) {
  for (auto pause : {0us, 50us, 2000us}) {
    for (int i = 0; i < 20; ++i) {
      Team team(3);
      Hits(team, 3, {6, 6});
      std::this_thread::sleep_for(pause);
    }
  }
  for (int i = 0; i < 20; ++i) Team unused(3);
}

TEST(Team, SaysWhetherAThreadIsInARegion) {
  Team team(2);
  EXPECT_FALSE(Team::InRegion());
  std::atomic<int> inside = 0;
  team.Run(2, {2, 2}, [&](int, int64_t, int64_t) {
    if (Team::InRegion()) ++inside;
  });
  EXPECT_EQ(inside, 2);
  EXPECT_FALSE(Team::InRegion());
}

// A signal for the process goes to a thread that the program knows of.
TEST(Team, HelpersTakeNoSignals) {
  Team team(2);
  std::atomic<int> arrived = 0;
  team.Run(2, {2, 2}, [&](int member, int64_t, int64_t) {
    ++arrived;
    EXPECT_TRUE(Await([&] { return arrived == 2; }));
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    EXPECT_EQ(sigismember(&blocked, SIGTERM), member == 1 ? 1 : 0);
    EXPECT_EQ(sigismember(&blocked, SIGINT), member == 1 ? 1 : 0);
  });
}

TEST(Team, ReportsThatAHelperWasOffItsProcessor) {
  Team team(2);
  std::atomic<int> arrived = 0;
  const Team::Times times = team.Run(2, {2, 2}, [&](int member, int64_t, int64_t) {
    ++arrived;
    EXPECT_TRUE(Await([&] { return arrived == 2; }));
    if (member == 1) std::this_thread::sleep_for(50ms);
  });
  EXPECT_GE(times.elapsed, 50'000'000);
  // All but the processor time that the thread got while it went to sleep.
  EXPECT_GE(times.taken, 45'000'000);
}

// 50 ms of sleep before a region are not held against a helper. Another program may have its processor for as long, but
// not in every region.
TEST(Team, ReportsNothingOfTheTimeForWhichHelpersHadNothingToDo) {
  Team team(2);
  int64_t least = 50'000'000;
  for (int i = 0; i < 200 && least >= 25'000'000; ++i) {
    std::this_thread::sleep_for(50ms);
    least = std::min(least, team.Run(2, {2, 2}, [](int, int64_t, int64_t) {}).taken);
  }
  EXPECT_LT(least, 25'000'000);
}

}  // namespace
}  // namespace bowline::kernels
