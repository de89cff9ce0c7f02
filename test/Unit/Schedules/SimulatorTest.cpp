//===- SimulatorTest.cpp - Time and memory of schedules
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Stages/Schedules/Simulator.h"
#include "test/Unit/Schedules/ScheduleHarness.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <map>
#include <tuple>

using namespace bowline;
using namespace bowline::test;
using testing::ElementsAre;
using testing::HasSubstr;

// F: 3 and 5. B: 4 and 6, on rank 1 cheaper than its parts. Transfers: 2.
TEST(Simulator, CostsOfStagesAndTransfers) {
  ScheduleCosts costs;
  costs.stages = {{3, 2, 2, {}}, {5, 4, 4, 6}};
  costs.transfer = 2;
  SimulatedStep step = simulateSchedule(makeSchedule(choose("1f1b"), 2, 2).value(), costs).value();
  EXPECT_THAT(step.ranks[0].starts, ElementsAre(0, 3, 18, 29)); // F0 F1 B0 B1
  EXPECT_THAT(step.ranks[0].ends, ElementsAre(3, 6, 22, 33));
  EXPECT_THAT(step.ranks[1].starts, ElementsAre(5, 10, 16, 21)); // F0 B0 F1 B1
  EXPECT_THAT(step.ranks[1].ends, ElementsAre(10, 16, 21, 27));
  EXPECT_EQ(step.makespan, 33);
  EXPECT_EQ(step.ranks[0].busy, 14);
  EXPECT_EQ(step.ranks[0].bubble, 19);
  EXPECT_EQ(step.ranks[1].bubble, 11);
  EXPECT_EQ(step.ranks[1].innerBubble, 0);
  EXPECT_EQ(step.maxBubble(), 19);
  EXPECT_EQ(step.maxPeak(), (PeakActivations{2, 2}));
}

TEST(Simulator, RefusesBadCosts) {
  Schedule schedule = makeSchedule(choose("1f1b"), 2, 2).value();
  auto messageOf = [&](const ScheduleCosts &costs) {
    return std::string(simulateSchedule(schedule, costs).status().message());
  };
  EXPECT_THAT(messageOf({{{1, 1, 1, {}}, {}, {}}, 0, {}}), HasSubstr("costs of 3 stages for a schedule of 2"));
  EXPECT_THAT(messageOf({{}, 0, {}}), HasSubstr("costs of 0 stages"));
  EXPECT_THAT(messageOf({{{-1, 1, 1, {}}}, 0, {}}), HasSubstr("negative"));
  EXPECT_THAT(messageOf({{{1, 1, 1, -1}}, 0, {}}), HasSubstr("negative"));
  EXPECT_THAT(messageOf({{{1, 1, 1, {}}}, -1, {}}), HasSubstr("negative"));
  EXPECT_THAT(messageOf({{{1, 1, 1, {}}}, 0, -1}), HasSubstr("negative"));
  EXPECT_THAT(messageOf({{{1, INT64_MAX, 1, {}}}, 0, {}}), HasSubstr("overflows"));
  schedule.ranks[0].pop_back();
  EXPECT_THAT(messageOf({}), HasSubstr("rank 0: B (or I) of microbatch 1 on stage 0 is missing"));
}

// Random schedules and costs: every block starts exactly when its rank is free and its inputs are there.
TEST(Simulator, ActionsStartAsSoonAsTheyCan) {
  RandomSizes random(5);
  for (int i = 0; i < 300; ++i) {
    Schedule schedule = randomSchedule(random);
    ScheduleCosts costs;
    costs.transfer = random.integer(0, 4);
    costs.stages.resize(schedule.placement.numStages());
    for (StageCosts &stage : costs.stages) {
      stage = {random.integer(0, 9), random.integer(0, 9), random.integer(0, 9), {}};
      if (random.integer(0, 1))
        stage.backward = random.integer(0, 9);
    }
    SimulatedStep step = simulateSchedule(schedule, costs).value();

    std::map<std::tuple<bool, int, int>, int64_t> made; // backward, stage, microbatch
    for (size_t rank = 0; rank < schedule.ranks.size(); ++rank)
      for (size_t at = 0; at < schedule.ranks[rank].size(); ++at) {
        const Action &action = schedule.ranks[rank][at];
        if (action.kind != ActionKind::BackwardWeight)
          made[{action.kind != ActionKind::Forward, schedule.stageOf(rank, action), action.microbatch}] =
              step.ranks[rank].ends[at];
      }
    int64_t makespan = 0;
    for (size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
      const SimulatedRank &simulated = step.ranks[rank];
      int64_t free = 0, busy = 0;
      for (size_t at = 0; at < schedule.ranks[rank].size();) {
        size_t end = at + (schedule.ranks[rank][at].overlapsNext ? 2 : 1);
        int64_t ready = free, duration = 0;
        auto needs = [&](bool backward, int stage, int microbatch) {
          bool isRemote = schedule.placement.rankOf(stage) != static_cast<int>(rank);
          ready = std::max(ready, made.at({backward, stage, microbatch}) + (isRemote ? costs.transfer : 0));
        };
        int64_t start = simulated.starts[at];
        for (; at < end; ++at) {
          const Action &action = schedule.ranks[rank][at];
          int stage = schedule.stageOf(rank, action);
          duration += costs.stages[stage].of(action.kind);
          if (action.kind == ActionKind::Forward && stage > 0)
            needs(false, stage - 1, action.microbatch);
          if (action.kind == ActionKind::Backward || action.kind == ActionKind::BackwardInput) {
            needs(false, stage, action.microbatch);
            if (stage + 1 < schedule.placement.numStages())
              needs(true, stage + 1, action.microbatch);
          }
          EXPECT_EQ(simulated.starts[at], start);
        }
        EXPECT_EQ(start, ready);
        EXPECT_EQ(simulated.ends[end - 1], start + duration);
        free = start + duration;
        busy += duration;
      }
      EXPECT_EQ(simulated.busy, busy);
      EXPECT_EQ(simulated.bubble, step.makespan - busy);
      makespan = std::max(makespan, free);
    }
    EXPECT_EQ(step.makespan, makespan);
  }
}
