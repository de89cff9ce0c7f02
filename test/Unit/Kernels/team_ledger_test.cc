#include "kernels/cpu/parallel/team_ledger.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/cpu/parallel/processor_meter.h"

namespace bowline::kernels {
namespace {

constexpr int64_t kMillisecond = 1'000'000, kSecond = 1'000 * kMillisecond;

// A machine with a clock of its own, on which a team runs regions beside busy loops. Time passes in steps of a
// millisecond. In a region each member has to be given a processor for as many steps as its part costs, and sleeps from
// then on. Where more threads want processors than there are, a random choice of them has to wait, for three steps.
class Machine {
 public:
  Machine(int processors, int threads, unsigned seed = 1)
      : processors_(processors), random_(seed), ledger_(threads), members_(threads, Member{ProcessorMeter(0, 0)}) {}

  int64_t now() const { return now_; }
  const TeamLedger& ledger() const { return ledger_; }

  // A part's cost in steps, by the member.
  void set_costs(std::vector<int> costs) { costs_ = std::move(costs); }
  // At every look a processor seems idle, whether it is or not.
  void set_sees_idle_always() { sees_idle_always_ = true; }
  // The member gets no processor until then.
  void HoldUp(int member, int64_t until) {
    held_up_ = member;
    held_up_until_ = until;
  }

  // Runs regions at least until `end`; returns how many.
  int RunUntil(int64_t end, int loops) {
    int regions = 0;
    for (; now_ < end; ++regions) RunRegion(loops);
    return regions;
  }

  // How long the team takes from now to be whole beside no loop.
  int64_t UntilWhole() {
    const int64_t begin = now_;
    while (!ledger_.whole()) RunRegion(0);
    return now_ - begin;
  }

 private:
  struct Member {
    ProcessorMeter meter;
    int64_t given = 0;
  };

  void RunRegion(int loops) {
    const int running = ledger_.members();
    std::vector<int> left(members_.size() + loops, 1);
    for (int i = 0; i < static_cast<int>(members_.size()); ++i) {
      left[i] = i < running ? (costs_.empty() ? 1 : costs_[i % costs_.size()]) : 0;
    }
    const int64_t begin = now_;
    while (std::any_of(left.begin(), left.begin() + running, [](int steps) { return steps > 0; })) Step(left);
    int64_t taken = 0;
    for (int i = 0; i < running; ++i) {
      if (members_[i].meter.Due(now_)) taken += members_[i].meter.Report(now_, members_[i].given);
    }
    ledger_.Ran(now_ - begin, taken);
    ledger_.SeeIdle(idle_since_, idle_until_);
  }

  void Step(std::vector<int>& left) {
    if (order_.size() != left.size() || steps_++ % 3 == 0) {
      order_.resize(left.size());
      std::iota(order_.begin(), order_.end(), 0);
      std::shuffle(order_.begin(), order_.end(), random_);
    }
    now_ += kMillisecond;
    int free = processors_;
    for (int thread : order_) {
      const bool member = thread < static_cast<int>(members_.size());
      if (left[thread] == 0) {
        members_[thread].meter.Slept(kMillisecond);
      } else if (free > 0 && !(thread == held_up_ && now_ <= held_up_until_)) {
        --free;
        if (!member) continue;
        members_[thread].given += kMillisecond;
        --left[thread];
      }
    }
    if (now_ - looked_ < 5 * kMillisecond) return;
    looked_ = now_;
    const bool idle = free > 0 || sees_idle_always_;
    if (!idle) {
      idle_since_ = INT64_MAX;
    } else {
      idle_since_ = std::min(idle_since_, now_);
      idle_until_ = now_;
    }
  }

  const int processors_;
  std::mt19937 random_;
  TeamLedger ledger_;
  std::vector<Member> members_;
  std::vector<int> costs_;
  int64_t now_ = 0;
  int steps_ = 0;
  std::vector<int> order_;
  int64_t looked_ = 0, idle_since_ = INT64_MAX, idle_until_ = 0;
  bool sees_idle_always_ = false;
  int held_up_ = -1;
  int64_t held_up_until_ = 0;
};

const int kTeams[] = {2, 3, 4, 8, 16, 64, 128};

TEST(TeamLedger, OnAnIdleMachineTheTeamIsAlwaysWhole) {
  for (int threads : kTeams) {
    for (const std::vector<int>& costs : {std::vector<int>{}, {7, 1}, {1, 2, 3, 4, 5, 6, 7, 8}}) {
      Machine machine(threads, threads);
      machine.set_costs(costs);
      while (machine.now() < 20 * kSecond) {
        machine.RunUntil(machine.now() + 1, 0);
        ASSERT_TRUE(machine.ledger().whole()) << threads << " threads, " << costs.size() << " costs";
      }
    }
  }
}

// Other programs want a processor for a millisecond ten times a second, each time that of some member.
TEST(TeamLedger, AMachineThatIsNearlyIdleLosesLittle) {
  for (int threads : kTeams) {
    Machine machine(threads, threads);
    std::mt19937 random(7);
    int64_t steps = 0, whole = 0;
    for (int64_t next = 0; machine.now() < 300 * kSecond;) {
      if (machine.now() >= next) {
        machine.HoldUp(std::uniform_int_distribution<int>(0, threads - 1)(random), machine.now() + kMillisecond);
        next += 100 * kMillisecond;
      }
      machine.RunUntil(machine.now() + 1, 0);
      ++steps;
      whole += machine.ledger().whole();
    }
    EXPECT_GE(static_cast<double>(whole), 0.90 * static_cast<double>(steps)) << threads;
  }
}

TEST(TeamLedger, LosesAsManyMembersAsHaveNoProcessorAndTakesThemBack) {
  for (int threads : kTeams) {
    for (int loops : {1, 2, threads / 4, threads / 2, threads - 1, threads, 2 * threads}) {
      if (loops < 1) continue;
      const int expected = std::max(1, threads - loops);
      for (unsigned seed = 0; seed < 3; ++seed) {
        Machine machine(threads, threads, seed);
        machine.RunUntil(500 * kMillisecond, loops);
        double sum = 0;
        int64_t count = 0;
        while (machine.now() < 5 * kSecond) {
          machine.RunUntil(machine.now() + 1, loops);
          sum += machine.ledger().members();
          ++count;
        }
        EXPECT_NEAR(sum / static_cast<double>(count), expected, 0.5 + 0.02 * threads)
            << threads << " threads, " << loops << " loops, seed " << seed;
        EXPECT_LE(machine.UntilWhole(), 100 * kMillisecond)
            << threads << " threads, " << loops << " loops, seed " << seed;
        machine.RunUntil(machine.now() + kSecond, 0);
        EXPECT_TRUE(machine.ledger().whole());
      }
    }
  }
}

TEST(TeamLedger, FewerThreadsThanProcessorsLoseNoneToOtherPrograms) {
  Machine machine(8, 4);
  machine.RunUntil(5 * kSecond, 4);
  EXPECT_TRUE(machine.ledger().whole());
  machine.RunUntil(machine.now() + kSecond, 5);
  EXPECT_EQ(machine.ledger().members(), 3);
}

TEST(TeamLedger, MoreThreadsThanProcessorsAreGivenUpWithoutOtherPrograms) {
  Machine machine(8, 20);
  machine.RunUntil(kSecond, 0);
  EXPECT_NEAR(machine.ledger().members(), 8, 1);
}

TEST(TeamLedger, AnInterruptedMemberCostsItselfAlone) {
  for (int threads : kTeams) {
    for (int member : {0, threads - 1}) {
      for (int64_t away : {5, 50, 3'600'000}) {
        if (away > 50 && threads > 2) continue;
        Machine machine(threads, threads);
        machine.RunUntil(kSecond, 0);
        const int64_t begin = machine.now();
        machine.HoldUp(member, begin + away * kMillisecond);
        machine.RunUntil(begin + 1, 0);
        EXPECT_EQ(machine.now(), begin + (away + 1) * kMillisecond);
        EXPECT_EQ(machine.ledger().members(), threads - 1) << threads << ", " << away << " ms";
        EXPECT_LE(machine.UntilWhole(), 20 * kMillisecond) << threads << ", " << away << " ms";
      }
    }
  }
}

// As where the operating system gives the watch another program's processor.
TEST(TeamLedger, TriesThatFailAreFewEvenIfTheMachineSeemsIdle) {
  Machine machine(2, 2);
  machine.set_sees_idle_always();
  machine.RunUntil(kSecond, 1);
  int tries = 0;
  for (int before = 1; machine.now() < 11 * kSecond; before = machine.ledger().members()) {
    machine.RunUntil(machine.now() + 1, 1);
    tries += machine.ledger().members() > before;
  }
  EXPECT_GT(tries, 0);
  EXPECT_LE(tries, 10 * kSecond / TeamLedger::kMostIdle);
  EXPECT_LE(machine.UntilWhole(), 100 * kMillisecond);
}

TEST(TeamLedger, IdlenessOfBeforeALossDoesNotCount) {
  TeamLedger ledger(2);
  ledger.Ran(TeamLedger::kPeriod, TeamLedger::kPeriod);
  EXPECT_EQ(ledger.members(), 1);
  ledger.SeeIdle(0, kSecond);
  EXPECT_EQ(ledger.members(), 1);
  ledger.SeeIdle(INT64_MAX, kSecond);
  EXPECT_EQ(ledger.members(), 1);
  ledger.SeeIdle(0, kSecond + TeamLedger::kLeastIdle - 1);
  EXPECT_EQ(ledger.members(), 1);
  ledger.SeeIdle(0, kSecond + TeamLedger::kLeastIdle);
  EXPECT_EQ(ledger.members(), 2);
}

TEST(TeamLedger, ReportsOfJustAfterALossMayBeOfBefore) {
  TeamLedger ledger(4);
  ledger.Ran(TeamLedger::kPeriod, TeamLedger::kPeriod);
  EXPECT_EQ(ledger.members(), 3);
  ledger.Ran(TeamLedger::kPeriod, TeamLedger::kPeriod);
  EXPECT_EQ(ledger.members(), 3);
  ledger.Ran(TeamLedger::kPeriod, TeamLedger::kPeriod);
  EXPECT_EQ(ledger.members(), 2);
}

TEST(TeamLedger, ATeamOfOneIsTheCaller) {
  TeamLedger ledger(1);
  ledger.Ran(kSecond, kSecond);
  EXPECT_EQ(ledger.members(), 1);
  EXPECT_TRUE(ledger.whole());
}

TEST(ProcessorMeter, SaysWhatWasTakenOfTheTimeAwake) {
  ProcessorMeter meter(100, 7);
  EXPECT_FALSE(meter.Due(100 + ProcessorMeter::kPeriod - 1));
  EXPECT_TRUE(meter.Due(100 + ProcessorMeter::kPeriod));
  meter.Slept(30);
  meter.Slept(10);
  EXPECT_EQ(meter.Report(1100, 507), 460);
  EXPECT_FALSE(meter.Due(1101));
  EXPECT_EQ(meter.Report(1200, 607), 0);
  // Time given to the thread while it went to sleep is not counted against other times.
  meter.Slept(100);
  EXPECT_EQ(meter.Report(1300, 610), 0);
  EXPECT_EQ(meter.Report(1400, 610), 100);
}

}  // namespace
}  // namespace bowline::kernels
