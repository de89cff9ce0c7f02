//===- PublishedFiguresTest.cpp - Schedules have the bubbles and memory that papers say
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Stages/Schedules/PublishedFigures.h"
#include "test/Unit/Schedules/ScheduleHarness.h"
#include "gtest/gtest.h"

using namespace bowline;
using namespace bowline::test;

namespace {

ScheduleCosts uniform(int64_t forward, int64_t input, int64_t weight) {
  return {{{forward, input, weight, {}}}, 0, {}};
}

/// Compares where the paper's conditions hold; says whether they did.
bool compare(const std::string &name, int ranks, int microbatches, const ScheduleCosts &costs) {
  ScheduleChoice choice = choose(name);
  std::optional<PublishedFigures> published = findPublishedFigures(choice, ranks, microbatches, costs);
  absl::StatusOr<Schedule> schedule = makeSchedule(choice, ranks, microbatches);
  if (!published || !schedule.ok())
    return false;
  SCOPED_TRACE(testing::Message() << name << " P=" << ranks << " M=" << microbatches << " F=" << costs.stages[0].forward
                                  << " I=" << costs.stages[0].backwardInput << " W=" << costs.stages[0].backwardWeight);
  SimulatedStep step = simulateSchedule(*schedule, costs).value();
  EXPECT_EQ(published->isInner ? step.maxInnerBubble() : step.maxBubble(), published->bubble);
  for (int rank = 0; rank < ranks; ++rank)
    EXPECT_EQ(step.ranks[rank].peak.untilWeight, published->activations[rank]) << "rank " << rank;
  return true;
}

/// At least `numCases` of them are as published, with unit costs.
void compareMany(const std::string &name, int numCases) {
  int compared = 0;
  for (int ranks : {1, 2, 3, 4, 5, 8, 13, 32})
    for (int microbatches : {1, 2, 3, 4, 7, 8, 9, 10, 15, 16, 24, 25, 26, 31, 63, 64, 65, 96})
      compared += compare(name, ranks, microbatches, ScheduleCosts{});
  EXPECT_GE(compared, numCases);
}

} // namespace

// Huang et al. 2019, section 2.3.
TEST(PublishedFigures, GPipe) { compareMany("gpipe", 8 * 18); }

// Narayanan et al. 2021, section 2.2.1.
TEST(PublishedFigures, OneForwardOneBackward) { compareMany("1f1b", 8 * 18); }

// Narayanan et al. 2021, section 2.2.2; Korthikanti et al. 2022, section 4.2.3.
TEST(PublishedFigures, Interleaved) {
  for (const char *name : {"interleaved:1", "interleaved:2", "interleaved:3", "interleaved:8"})
    compareMany(name, 50);
}

// Lamy-Poirier 2023.
TEST(PublishedFigures, BreadthFirst) {
  for (const char *name : {"breadth_first:1", "breadth_first:2", "breadth_first:3", "breadth_first:8"})
    compareMany(name, 8 * 18);
}

// Qi et al. 2023, section 2.
TEST(PublishedFigures, ZeroBubble) {
  compareMany("zb_h1", 90);
  compareMany("zb_h2", 70);
}

// Qi et al. 2024.
TEST(PublishedFigures, ZeroBubbleV) { compareMany("zb_v", 70); }

// DeepSeek-V3, section 3.2.1.
TEST(PublishedFigures, DualPipeV) { compareMany("dualpipe_v", 70); }

// Formulas that hold for more than unit costs, as the header says.
TEST(PublishedFigures, HoldForOtherCosts) {
  RandomSizes random(20210409);
  int compared = 0;
  for (int i = 0; i < 600; ++i) {
    const std::string &name = publishedSchedules()[i % publishedSchedules().size()];
    int ranks = random.integer(1, 9), microbatches = ranks * random.integer(1, 4);
    int64_t forward = random.integer(1, 9), input = forward + random.integer(0, 5);
    ScheduleCosts costs = uniform(forward, input, i % 2 ? forward : random.integer(1, 9));
    compared += compare(name, ranks, microbatches, costs);
  }
  EXPECT_GE(compared, 300);
}

// F&B of the paper: a pair may be faster than its two halves.
TEST(PublishedFigures, DualPipeVWithOverlap) {
  for (int ranks = 1; ranks <= 8; ++ranks)
    for (int microbatches : {2 * ranks, 2 * ranks + 1, 5 * ranks})
      for (int64_t overlapped = 20; overlapped <= 30; ++overlapped) {
        ScheduleCosts costs = uniform(10, 10, 10);
        costs.overlapped = overlapped;
        EXPECT_TRUE(compare("dualpipe_v", ranks, microbatches, costs)) << overlapped;
      }
}

// Where conditions do not hold there is nothing to compare with, rather than something wrong.
TEST(PublishedFigures, SaysNothingBeyondItsConditions) {
  auto says = [](const char *name, int microbatches, const ScheduleCosts &costs) {
    return findPublishedFigures(choose(name), 4, microbatches, costs).has_value();
  };
  EXPECT_FALSE(says("zb_h1", 3, {}));
  EXPECT_FALSE(says("zb_h2", 6, {}));
  EXPECT_FALSE(says("zb_v", 6, {}));
  EXPECT_FALSE(says("zb_v", 16, uniform(1, 2, 1)));
  EXPECT_FALSE(says("zb_h1", 16, uniform(2, 1, 2)));
  EXPECT_FALSE(says("dualpipe_v", 16, uniform(1, 1, 2)));
  EXPECT_FALSE(says("mine.csv", 16, {}));
  ScheduleCosts transfers;
  transfers.transfer = 1;
  EXPECT_FALSE(says("1f1b", 16, transfers));
}

// The numbers of one example, from the formulas by hand, so that an error in a formula shows: P = 4, M = 8, units.
TEST(PublishedFigures, ByHand) {
  struct Example {
    const char *name;
    int64_t makespan, bubble, inner;
    std::vector<PeakActivations> peaks;
  };
  const Example examples[] = {
      {"gpipe", 33, 9, 9, {{8, 8}, {8, 8}, {8, 8}, {8, 8}}},
      {"1f1b", 33, 9, 9, {{4, 4}, {3, 3}, {2, 2}, {1, 1}}},
      {"interleaved:2", 57, 9, 9, {{11, 11}, {9, 9}, {7, 7}, {5, 5}}},
      {"breadth_first:2", 57, 9, 9, {{16, 16}, {16, 16}, {16, 16}, {16, 16}}},
      {"zb_h1", 27, 3, 3, {{4, 4}, {3, 4}, {2, 4}, {1, 4}}},
      {"zb_h2", 27, 3, 0, {{7, 7}, {5, 7}, {3, 7}, {1, 7}}},
      {"zb_v", 51, 3, 0, {{8, 8}, {8, 8}, {8, 8}, {8, 8}}},
      {"dualpipe_v", 54, 6, 6, {{9, 9}, {9, 9}, {9, 9}, {9, 9}}},
  };
  for (const Example &example : examples) {
    SCOPED_TRACE(example.name);
    SimulatedStep step = simulateSchedule(makeSchedule(choose(example.name), 4, 8).value()).value();
    EXPECT_EQ(step.makespan, example.makespan);
    EXPECT_EQ(step.maxBubble(), example.bubble);
    EXPECT_EQ(step.maxInnerBubble(), example.inner);
    for (int rank = 0; rank < 4; ++rank)
      EXPECT_EQ(step.ranks[rank].peak, example.peaks[rank])
          << "rank " << rank << " holds " << step.ranks[rank].peak.untilInput << " until B or I, "
          << step.ranks[rank].peak.untilWeight << " until W";
  }
}
