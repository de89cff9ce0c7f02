//===- GeneratorsTest.cpp - The orders of published schedules
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Stages/Schedules/Generators.h"
#include "passes/Stages/Schedules/ScheduleTable.h"
#include "passes/Stages/Schedules/Simulator.h"
#include "passes/Stages/Schedules/Timeline.h"
#include "passes/Stages/Schedules/Validator.h"
#include "test/Unit/Schedules/ScheduleHarness.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

#include <ctime>

using namespace bowline;
using namespace bowline::test;
using testing::HasSubstr;

static std::string tableOf(const char *name, int ranks, int microbatches) {
  return formatScheduleTable(makeSchedule(choose(name), ranks, microbatches).value());
}

// Small enough to be followed in the papers' figures.
TEST(Generators, SmallOrders) {
  EXPECT_EQ(tableOf("gpipe", 2, 2), "F0,F1,B0,B1\nF0,F1,B0,B1\n");
  EXPECT_EQ(tableOf("1f1b", 3, 4), "F0,F1,F2,B0,F3,B1,B2,B3\n"
                                   "F0,F1,B0,F2,B1,F3,B2,B3\n"
                                   "F0,B0,F1,B1,F2,B2,F3,B3\n");
  EXPECT_EQ(tableOf("interleaved:2", 2, 2), "F0.0,F1.0,F0.1,F1.1,B0.1,B1.1,B0.0,B1.0\n"
                                            "F0.0,F1.0,F0.1,B0.1,F1.1,B1.1,B0.0,B1.0\n");
  EXPECT_EQ(tableOf("breadth_first:2", 2, 2), "F0.0,F1.0,F0.1,F1.1,B0.1,B1.1,B0.0,B1.0\n"
                                              "F0.0,F1.0,F0.1,F1.1,B0.1,B1.1,B0.0,B1.0\n");
  EXPECT_EQ(tableOf("zb_h1", 2, 3), "F0,F1,I0,W0,F2,I1,W1,I2,W2\n"
                                    "F0,I0,F1,I1,W0,F2,I2,W1,W2\n");
  EXPECT_EQ(tableOf("zb_h2", 2, 3), "F0,F1,F2,I0,W0,I1,W1,I2,W2\n"
                                    "F0,I0,F1,I1,F2,I2,W0,W1,W2\n");
  EXPECT_EQ(tableOf("zb_v", 2, 1), "0F0,3F0,3I0,3W0,0I0,0W0\n"
                                   "1F0,2F0,2I0,2W0,1I0,1W0\n");
  EXPECT_EQ(tableOf("dualpipe_v", 1, 3), "F0.0,F0.1,F1.0,B0.1,F1.1&B0.0,F2.0&B1.1,F2.1&B1.0,B2.1,I2.0,W2.0\n");
}

TEST(Generators, Placements) {
  Placement looped = makeInterleaved(3, 3, 2)->placement, vee = makeZbV(3, 1)->placement;
  EXPECT_EQ(looped.stageOf(1, 1), 4);
  EXPECT_EQ(vee.stageOf(0, 1), 5);
  for (const Placement &placement : {looped, vee})
    for (int stage = 0; stage < placement.numStages(); ++stage)
      EXPECT_EQ(placement.stageOf(placement.rankOf(stage), placement.chunkOf(stage)), stage);
  EXPECT_TRUE(Placement::verify({{0, 3}, {2, 1}}).ok());
  EXPECT_THAT(Placement::verify({{0, 1}, {1, 2}}).message(), HasSubstr("stage 1 is on rank 0 and on rank 1"));
  EXPECT_THAT(Placement::verify({{0, 1}, {2}}).message(), HasSubstr("rank 1 holds 1 stages and rank 0 holds 2"));
  EXPECT_THAT(Placement::verify({{0}, {2}}).message(), HasSubstr("rank 1 holds stage 2, but there are 2"));
  EXPECT_FALSE(Placement::verify({{0}, {-1}}).ok());
  EXPECT_FALSE(Placement::verify({}).ok());
}

TEST(Generators, RefuseWhatDoesNotFit) {
  auto messageOf = [](const char *name, int ranks, int microbatches) {
    return std::string(makeSchedule(choose(name), ranks, microbatches).status().message());
  };
  EXPECT_THAT(messageOf("interleaved:2", 4, 10), HasSubstr("the nearest is 8 or 12"));
  EXPECT_THAT(messageOf("interleaved:2", 4, 3), HasSubstr("the nearest is 4, or use breadth_first:2"));
  EXPECT_THAT(messageOf("dualpipe_v", 4, 7), HasSubstr("needs at least 8 microbatches"));
  for (const std::string &name : publishedSchedules()) {
    EXPECT_THAT(messageOf(name.c_str(), 0, 8), HasSubstr("at least 1 rank, not 0"));
    EXPECT_THAT(messageOf(name.c_str(), 8, 0), HasSubstr("at least 1 microbatch, not 0"));
    EXPECT_THAT(messageOf(name.c_str(), INT32_MAX, INT32_MAX), HasSubstr("use fewer microbatches"));
    EXPECT_FALSE(makeSchedule(choose(name), INT32_MAX, 1).ok());
    EXPECT_FALSE(makeSchedule(choose(name), -3, -3).ok());
  }
  EXPECT_THAT(std::string(makeSchedule(choose("a.csv"), 2, 2).status().message()), HasSubstr("read from its file"));
}

TEST(Generators, ConditionsAreKnownBefore) {
  for (const std::string &name : publishedSchedules())
    for (int ranks : {0, 1, 2, 3, 4, 2049})
      for (int microbatches : {0, 1, 2, 3, 4, 7, 8, 9, 4100, 1 << 24}) {
        if (int64_t{ranks} * microbatches > 1 << 20 && ranks < 2049)
          continue; // which would take long to make
        EXPECT_EQ(checkSchedule(choose(name.c_str()), ranks, microbatches).ok(),
                  makeSchedule(choose(name.c_str()), ranks, microbatches).ok())
            << name << " " << ranks << " " << microbatches;
      }
}

// Advice for a schedule alone is right for it.
TEST(Generators, AdvisedSizesAreTaken) {
  for (int ranks : {2, 3, 4, 2048, 4096, 5000})
    for (int microbatches : {1, 2, 3, 5, 2047, 4095, 1 << 23}) {
      absl::Status refused = makeInterleaved(ranks, microbatches, 2).status();
      absl::string_view message = refused.message();
      if (refused.ok() || message.find("the nearest is ") == message.npos)
        continue;
      message.remove_prefix(message.find("the nearest is ") + 15);
      for (absl::string_view number : absl::StrSplit(message.substr(0, message.find(",")), " or ", absl::SkipEmpty())) {
        int count = 0;
        ASSERT_TRUE(absl::SimpleAtoi(number, &count)) << message;
        EXPECT_TRUE(checkSchedule(choose("interleaved:2"), ranks, count).ok()) << refused;
      }
    }
}

// A release build makes each in 0.01 s and simulates it in 0.3 s; a generator far from linear exceeds the test's time
// limit.
TEST(Generators, LargeSchedulesRun) {
  for (std::string name : publishedSchedules()) {
    Schedule schedule = makeSchedule(choose(name), 64, 4096).value();
    EXPECT_TRUE(simulateSchedule(schedule).ok()) << name;
  }
}

TEST(Timeline, ShowsWhatOverlapsAndIdles) {
  auto draw = [](const char *name, int ranks, int microbatches) {
    Schedule schedule = makeSchedule(choose(name), ranks, microbatches).value();
    return drawTimeline(schedule, simulateSchedule(schedule).value());
  };
  EXPECT_EQ(draw("1f1b", 2, 2), "rank 0 F0 F1 .  .  B0 -  .  B1 -\n"
                                "rank 1 .  F0 B0 -  F1 B1 -  .  .\n");
  EXPECT_EQ(draw("dualpipe_v", 1, 2), "rank 0 F0  f0  F1  b0  -   f1  =B0 -   b1  -   I1  W1\n");
  EXPECT_EQ(draw("breadth_first:3", 1, 1), "rank 0 F0.0 F0.1 F0.2 B0.2 -    B0.1 -    B0.0 -\n");
}
