//===- TimelineExecutionTest.cpp - Timelines run to their end, in their slots, and overlap
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Stages/Schedules/Simulator.h"
#include "passes/Stages/Schedules/TimelineRun.h"
#include "passes/Stages/Schedules/TimelineSlots.h"
#include "test/Unit/Schedules/TimelineHarness.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <utility>

using namespace bowline;
using namespace bowline::test;
using testing::HasSubstr;

static constexpr int64_t kScale = 10;
static constexpr int64_t kTransfers[] = {1, 5, 10};

/// An executor runs actions that overlap one after the other.
static SimulatedStep simulateWithoutBlocks(Schedule schedule, int64_t scale, int64_t transfer) {
  for (std::vector<Action> &actions : schedule.ranks)
    for (Action &action : actions)
      action.overlapsNext = false;
  ScheduleCosts costs;
  costs.stages = {{scale, scale, scale, {}}};
  costs.transfer = transfer;
  return simulateSchedule(schedule, costs).value();
}

static int64_t makespanOf(const Schedule &schedule, const PipelineTimeline &timeline, int64_t scale, int64_t transfer) {
  return executeTimeline(schedule.placement, timeline, unitDurations(scale, transfer)).makespan;
}

TEST(TimelineExecution, NeverHangsAndNeverSharesASlot) {
  RandomSizes random(2026);
  for (const auto &[name, schedule] : timelineSchedules())
    for (int distance : {0, 1, 3}) {
      PipelineTimeline timeline = makeTimeline(schedule, distance);
      for (int run = 0; run < 3; ++run) {
        SCOPED_TRACE(absl::StrCat(name, " distance ", distance, " run ", run));
        StepDuration durations = randomDurations(random, schedule.placement.numStages());
        ModelResult result = executeTimeline(schedule.placement, timeline, durations);
        EXPECT_EQ(result.stuck, "");
        EXPECT_EQ(result.collision, "");
      }
    }
}

// At unit costs the slots suffice without waiting for any, with short transfers and with long ones; with one fewer in
// any place two microbatches share one.
TEST(TimelineExecution, SlotsAreTight) {
  using Member = int StageSlots::*;
  for (const auto &[name, schedule] : timelineSchedules()) {
    if (schedule.numMicrobatches > 8)
      continue;
    PipelineTimeline timeline = makeTimeline(schedule);
    const Placement &placement = schedule.placement;
    auto collide = [&] {
      return std::any_of(std::begin(kTransfers), std::end(kTransfers), [&](int64_t transfer) {
        return !executeTimeline(placement, timeline, unitDurations(kScale, transfer), /*waitsForSlots=*/false)
                    .collision.empty();
      });
    };
    EXPECT_FALSE(collide()) << name;
    for (int stage = 0; stage < placement.numStages(); ++stage) {
      auto isLocal = [&](int other) {
        return other >= 0 && other < placement.numStages() && placement.rankOf(stage) == placement.rankOf(other);
      };
      for (Member member : {&StageSlots::stash, &StageSlots::receivedActivation, &StageSlots::receivedGradient,
                            &StageSlots::sentActivation, &StageSlots::sentGradient, &StageSlots::weightInputs}) {
        // The same buffers as those received on the other side.
        if (member == &StageSlots::sentActivation && isLocal(stage + 1)) {
          EXPECT_EQ(timeline.slots[stage].*member, timeline.slots[stage + 1].receivedActivation);
          continue;
        }
        if (member == &StageSlots::sentGradient && isLocal(stage - 1)) {
          EXPECT_EQ(timeline.slots[stage].*member, timeline.slots[stage - 1].receivedGradient);
          continue;
        }
        int &slots = timeline.slots[stage].*member;
        bool isSent = member == &StageSlots::sentActivation || member == &StageSlots::sentGradient;
        if (slots == 0 || (isSent && slots == std::min(schedule.numMicrobatches, 2)))
          continue; // nothing there, or the least that is given
        --slots;
        EXPECT_TRUE(collide()) << name << " stage " << stage;
        ++slots;
      }
    }
  }
}

// In 1F1B stage s holds P - s microbatches. A forward is every other computation, so that receives issued d
// computations ahead add (d + 1) / 2 activations: all of them as long as the order of transfers lets all be issued so
// early.
TEST(TimelineExecution, SlotsOf1F1B) {
  for (int ranks = 1; ranks <= 8; ++ranks)
    for (int microbatches : {1, 2, 3, 5, 8, 30})
      for (int distance : {0, 1, 2, 3, 4}) {
        PipelineTimeline timeline = makeTimeline(makeSchedule(choose("1f1b"), ranks, microbatches).value(), distance);
        for (int stage = 0; stage < ranks; ++stage) {
          SCOPED_TRACE(absl::StrCat("P=", ranks, " M=", microbatches, " d=", distance, " stage ", stage));
          const StageSlots &slots = timeline.slots[stage];
          EXPECT_EQ(slots.stash, std::min(microbatches, ranks - stage));
          int received = stage == 0 ? 0 : std::min(microbatches, ranks - stage + (distance + 1) / 2);
          if (distance <= 2)
            EXPECT_EQ(slots.receivedActivation, received);
          EXPECT_GE(slots.receivedActivation, stage == 0 ? 0 : slots.stash);
          EXPECT_LE(slots.receivedActivation, received);
          EXPECT_EQ(slots.weightInputs, 0);
          if (distance != 1)
            continue;
          EXPECT_EQ(slots.sentActivation, stage + 1 == ranks ? 0 : std::min(microbatches, 2));
          EXPECT_GE(slots.receivedGradient, stage + 1 < ranks);
          EXPECT_LE(slots.receivedGradient, stage + 1 == ranks ? 0 : std::min(microbatches, 2));
          EXPECT_EQ(slots.sentGradient, stage == 0 ? 0 : std::min(microbatches, 2));
        }
      }
}

// Issued d computations earlier, receives of a stage are at most d microbatches further on.
TEST(TimelineExecution, PrefetchingCostsAtMostItsDistance) {
  for (const auto &[name, schedule] : timelineSchedules()) {
    if (name == "table")
      continue; // takes microbatches out of order
    PipelineTimeline without = makeTimeline(schedule, 0);
    for (int distance : {1, 2, 3, 10}) {
      PipelineTimeline timeline = makeTimeline(schedule, distance);
      for (int stage = 0; stage < schedule.placement.numStages(); ++stage) {
        SCOPED_TRACE(absl::StrCat(name, " distance ", distance, " stage ", stage));
        const StageSlots &slots = timeline.slots[stage], &least = without.slots[stage];
        EXPECT_EQ(slots.stash, least.stash);
        EXPECT_EQ(slots.weightInputs, least.weightInputs);
        EXPECT_LE(slots.receivedActivation, least.receivedActivation + distance);
        EXPECT_LE(slots.receivedGradient, least.receivedGradient + distance);
      }
    }
  }
}

// With transfers that take no longer than half of a forward the step takes at most 1 % longer than one in which every
// transfer runs beside computations from the moment when its value is made: that is the cost of queues, rendezvous,
// slots and one order for all transfers. With transfers as long as a forward it is 5 %.
TEST(TimelineExecution, TransfersRunBesideComputations) {
  for (const auto &[name, schedule] : timelineSchedules())
    for (int64_t transfer : kTransfers) {
      PipelineTimeline timeline = makeTimeline(schedule);
      int64_t least = simulateWithoutBlocks(schedule, kScale, transfer).makespan;
      int64_t allowed = least + least * (2 * transfer <= kScale ? 1 : 5) / 100;
      EXPECT_LE(makespanOf(schedule, timeline, kScale, transfer), allowed) << name << " transfer " << transfer;
    }
}

// Where no rank waits for its neighbour's answer within the steady state, transfers cost the way through the pipeline
// and back and no more, however many microbatches there are. Received when needed, each microbatch's would cost.
TEST(TimelineExecution, TransfersOfGPipeAreHidden) {
  constexpr int64_t kTransfer = 9;
  for (const char *name : {"gpipe", "breadth_first:2"})
    for (int ranks = 2; ranks <= 8; ++ranks) {
      Schedule schedule = makeSchedule(choose(name), ranks, 24).value();
      int64_t hops = 2 * (schedule.placement.numStages() - 1);
      int64_t free = simulateWithoutBlocks(schedule, kScale, 0).makespan;
      EXPECT_LE(makespanOf(schedule, makeTimeline(schedule), kScale, kTransfer), free + hops * kTransfer)
          << name << ranks;
      EXPECT_GE(makespanOf(schedule, makeTimeline(schedule, 0), kScale, kTransfer), free + 2 * 23 * kTransfer)
          << name << ranks;
    }
}

// Two receives of one channel that changed places; a send too late; a receive that is not there.
TEST(TimelineExecution, BrokenTimelinesHang) {
  int broken = 0;
  for (const auto &[name, schedule] : timelineSchedules()) {
    PipelineTimeline good = makeTimeline(schedule);
    for (size_t rank = 0; rank < good.ranks.size(); ++rank) {
      std::vector<size_t> transfers;
      for (size_t step = 0; step < good.ranks[rank].size(); ++step)
        if (!isComputation(good.ranks[rank][step]))
          transfers.push_back(step);
      if (transfers.empty())
        continue;
      auto expectStuck = [&](const PipelineTimeline &timeline, const char *what) {
        ++broken;
        EXPECT_NE(executeTimeline(schedule.placement, timeline, unitDurations(1, 1)).stuck, "") << name << " " << what;
        PipelineTimeline counted = timeline;
        EXPECT_THAT(countSlots(schedule.placement, /*trains=*/true, counted).message(),
                    HasSubstr("the pipeline's timeline hangs: rank "));
      };
      size_t first = transfers.front();
      auto second = std::find_if(transfers.begin() + 1, transfers.end(), [&](size_t step) {
        return good.ranks[rank][step].channel == good.ranks[rank][first].channel;
      });
      if (second != transfers.end()) {
        PipelineTimeline timeline = good;
        std::swap(timeline.ranks[rank][first], timeline.ranks[rank][*second]);
        expectStuck(timeline, "exchanged");
      }
      PipelineTimeline timeline = good;
      timeline.ranks[rank].erase(timeline.ranks[rank].begin() + static_cast<ptrdiff_t>(transfers.back()));
      expectStuck(timeline, "missing");
    }
  }
  EXPECT_GT(broken, 100);
}

// Two slots for sends may hang: the last rank of breadth_first stops until rank 0 receives, rank 0 does not until it
// has sent all microbatches of its first chunk, and these the last rank does not receive any more.
TEST(TimelineExecution, TwoSlotsForSendsMayHang) {
  for (int ranks = 2; ranks <= 4; ++ranks) {
    Schedule schedule = makeSchedule(choose("breadth_first:2"), ranks, 30).value();
    PipelineTimeline timeline = makeTimeline(schedule);
    StepDuration durations = unitDurations(kScale, 1);
    EXPECT_EQ(executeTimeline(schedule.placement, timeline, durations).stuck, "");
    for (StageSlots &slots : timeline.slots)
      slots.sentActivation = std::min(slots.sentActivation, 2);
    EXPECT_NE(executeTimeline(schedule.placement, timeline, durations).stuck, "");
  }
}
