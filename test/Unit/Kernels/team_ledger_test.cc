#include "kernels/cpu/parallel/team_ledger.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace bowline::kernels {
namespace {

constexpr int64_t kMicrosecond = 1'000, kMillisecond = 1'000'000;

TEST(TeamLedger, ATeamThatSavesTimeGoesOn) {
  TeamLedger ledger;
  int64_t now = 0;
  for (int i = 0; i < 100'000; ++i) {
    ASSERT_TRUE(ledger.TeamPays(now));
    ledger.Enter(now, 10 * kMicrosecond, 18 * kMicrosecond);
    now += 15 * kMicrosecond;
  }
}

TEST(TeamLedger, WhatWasSavedPaysForAStall) {
  TeamLedger ledger;
  ledger.Enter(0, 10 * kMillisecond, 20 * kMillisecond);  // 0.5 of 10 ms are counted as unseen
  ledger.Enter(0, 9 * kMillisecond, 0);
  EXPECT_TRUE(ledger.TeamPays(0));
  ledger.Enter(0, 1 * kMillisecond, 0);
  EXPECT_FALSE(ledger.TeamPays(0));
}

TEST(TeamLedger, SavingsAreBounded) {
  TeamLedger ledger;
  ledger.Enter(0, 1000 * kMillisecond, 2000 * kMillisecond);
  ledger.Enter(0, TeamLedger::kMostCredit, 0);
  EXPECT_FALSE(ledger.TeamPays(0));
}

TEST(TeamLedger, PausesInProportionToWhatWasLostAndTriesAgain) {
  for (const int64_t stall : {1 * kMillisecond, 3 * kMillisecond}) {
    TeamLedger ledger;
    const int64_t lost = stall + stall / 20, end = 7 + stall + TeamLedger::kPatience * lost;
    ledger.Enter(7, stall, 0);
    EXPECT_FALSE(ledger.TeamPays(end - 1));
    EXPECT_TRUE(ledger.TeamPays(end));
    // The stake is there again.
    ledger.Enter(end, TeamLedger::kStake / 2, 0);
    EXPECT_TRUE(ledger.TeamPays(end));
    ledger.Enter(end, TeamLedger::kStake / 2, 0);
    EXPECT_FALSE(ledger.TeamPays(end));
  }
}

TEST(TeamLedger, PausesTwiceAsLongAfterEachTryThatSavesNothing) {
  TeamLedger ledger;
  int64_t now = 0, pause = 0;
  const auto fail = [&] {
    ledger.Enter(now, TeamLedger::kStake, 0);
    const int64_t begin = now + TeamLedger::kStake;
    // To a microsecond.
    for (now = begin; !ledger.TeamPays(now);) now += kMicrosecond;
    return now - begin;
  };
  for (int64_t tries = 1; tries <= 64; tries *= 2) {
    pause = fail();
    EXPECT_NEAR(static_cast<double>(pause),
                static_cast<double>(
                    std::min(tries * TeamLedger::kPatience * TeamLedger::kStake * 21 / 20, TeamLedger::kLongestPause)),
                2. * kMicrosecond);
  }
  // One that saves what a try may lose begins anew.
  ledger.Enter(now, kMicrosecond, 2 * TeamLedger::kStake);
  ledger.Enter(now, 2 * TeamLedger::kStake, 0);
  EXPECT_LT(fail(), TeamLedger::kLongestPause / 8);
}

TEST(TeamLedger, NoPauseIsLongerThanItSays) {
  TeamLedger ledger;
  const int64_t stall = 3'600'000 * kMillisecond;  // the process was stopped for an hour
  ledger.Enter(0, stall, 0);
  EXPECT_FALSE(ledger.TeamPays(stall + TeamLedger::kLongestPause - 1));
  EXPECT_TRUE(ledger.TeamPays(stall + TeamLedger::kLongestPause));
}

TEST(TeamLedger, ATeamThatStallsCostsAHalfPercentAtMost) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    // Regions that save some time, and now and then a stall that takes more than they save together.
    std::uniform_int_distribution<int64_t> alone(10 * kMicrosecond, 200 * kMicrosecond);
    std::uniform_int_distribution<int64_t> stall(500 * kMicrosecond, 4 * kMillisecond);
    std::bernoulli_distribution stalls(0.2);
    TeamLedger ledger;
    int64_t now = 0, time_alone = 0;
    while (time_alone < 20'000 * kMillisecond) {
      const int64_t work = alone(random);
      const int64_t with_team = work * 6 / 10 + (stalls(random) ? stall(random) : 0);
      const bool team = ledger.TeamPays(now);
      if (team) ledger.Enter(now, with_team, work);
      now += team ? with_team : work;
      time_alone += work;
    }
    EXPECT_LT(static_cast<double>(now - time_alone), 0.005 * static_cast<double>(now)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace bowline::kernels
