//===- ScheduleTableTest.cpp - Schedules that users write
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Stages/Schedules/ScheduleTable.h"
#include "passes/Stages/Schedules/Validator.h"
#include "test/Unit/Schedules/ScheduleHarness.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace bowline;
using namespace bowline::test;
using testing::HasSubstr;
using testing::StartsWith;

namespace {

Schedule parse(const char *text, int ranks, int microbatches) {
  absl::StatusOr<Schedule> schedule = parseScheduleTable(text, "t.csv", ranks, microbatches);
  EXPECT_EQ(schedule.status(), absl::OkStatus());
  return schedule.ok() ? *std::move(schedule) : Schedule{};
}

std::string messageOf(absl::string_view text, int ranks, int microbatches) {
  return std::string(parseScheduleTable(text, "t.csv", ranks, microbatches).status().message());
}

} // namespace

TEST(ScheduleTable, IsReadAsWritten) {
  Schedule expected = makeSchedule(choose("1f1b"), 2, 2).value();
  EXPECT_EQ(parse("F0,F1,B0,B1\nF0,B0,F1,B1\n", 2, 2), expected);
  // Idle cells, blanks, comments, quotes, other ends of lines, the mark of a spreadsheet.
  EXPECT_EQ(parse("\xEF\xBB\xBF# mine\n\n F0 ,F1,,,B0,,B1\r\n,\"F0\",B0 , F1,B1,,\r\n\r\n", 2, 2), expected);
}

TEST(ScheduleTable, HasChunksOrStages) {
  Schedule looped = makeSchedule(choose("breadth_first:2"), 2, 1).value();
  EXPECT_EQ(parse("F0.0,F0.1,B0.1,B0.0\nF0,F0.1,B0.1,B0\n", 2, 1), looped);
  EXPECT_EQ(parse("0F0,2F0,2B0,0B0\n1F0,3F0,3B0,1B0\n", 2, 1), looped);
  EXPECT_EQ(parse("0F0,3F0,3I0,3W0,0I0,0W0\n1F0,2F0,2I0,2W0,1I0,1W0\n", 2, 1),
            makeSchedule(choose("zb_v"), 2, 1).value());
}

TEST(ScheduleTable, HasActionsThatOverlap) {
  Schedule dual = makeSchedule(choose("dualpipe_v"), 1, 2).value();
  EXPECT_EQ(parse("0F0,1F0,0F1,1B0,1F1&0B0,1B1,0I1,0W1", 1, 2), dual);
  EXPECT_EQ(parse("0F0,1F0,0F1,1B0,(1F1;0B0)OVERLAP_F_B,1B1,0I1,0W1", 1, 2), dual);
}

TEST(ScheduleTable, RoundTripsEverySchedule) {
  RandomSizes random(6);
  for (int i = 0; i < 300; ++i) {
    Schedule schedule = randomSchedule(random);
    std::string text = formatScheduleTable(schedule);
    absl::StatusOr<Schedule> read =
        parseScheduleTable(text, "t.csv", schedule.placement.numRanks(), schedule.numMicrobatches);
    ASSERT_EQ(read.status(), absl::OkStatus()) << text;
    EXPECT_EQ(*read, schedule) << text;
  }
}

TEST(ScheduleTable, NamesTheCellThatIsWrong) {
  for (const char *cell : {"X0", "F", "0", "F0.", "F0.1.2", "F-1", "F0x", "f0", "0F0.1", "F99999999999", "&", "F0&",
                           "(F0;B0)", "\"F0", "=F0", "\x80"})
    EXPECT_THAT(messageOf(std::string("F0,B0,") + cell, 1, 1), StartsWith("t.csv:1:3: ")) << cell;
  EXPECT_THAT(messageOf("\n#\nF0,SEND_F0", 1, 1),
              HasSubstr("t.csv:3:2: 'SEND_F0' is no action; leave communication out"));
  EXPECT_THAT(messageOf("0F0,0UNSHARD", 1, 1),
              HasSubstr("t.csv:1:2: '0UNSHARD' is no action; leave communication out"));
  EXPECT_THAT(messageOf("F0,F1,B0,B1", 1, 1), HasSubstr("t.csv:1:2: 'F1' is of microbatch 1, but the step has 1"));
  EXPECT_THAT(messageOf("F0,B0\n0F0,0B0", 2, 1), HasSubstr("t.csv:2:1: only some actions begin with a stage"));
  EXPECT_THAT(messageOf("F0&B0&W0", 1, 1), HasSubstr("t.csv:1:1: more than two actions overlap"));
  EXPECT_THAT(messageOf("F0.60000,B0", 1, 1), HasSubstr("t.csv:1:1: chunk 60000 is more than"));
  EXPECT_THAT(messageOf("F0.2147483647,B0", 1, 1), StartsWith("t.csv:1:1: "));
}

TEST(ScheduleTable, NamesWhatIsWrongWithTheWhole) {
  EXPECT_THAT(messageOf("F0,B0\n", 2, 1),
              HasSubstr("t.csv: the pipeline has 2 ranks, but lines with actions in the table are 1"));
  EXPECT_THAT(messageOf("", 1, 1), HasSubstr("in the table are 0"));
  EXPECT_THAT(messageOf("F0,B0\nF0,B0\nF0,B0\n", 2, 1), HasSubstr("t.csv:3:1: the table has more than 2 lines"));
  EXPECT_THAT(messageOf(",,", 1, 1), HasSubstr("t.csv: rank 0: F of microbatch 0 on stage 0 is missing"));
  EXPECT_THAT(messageOf("F0,B0", 1, 2), HasSubstr("t.csv: rank 0: F of microbatch 1 on stage 0 is missing"));
  EXPECT_THAT(messageOf("0F0,0B0\n0F0,0B0", 2, 1), HasSubstr("t.csv: stage 0 is on rank 0 and on rank 1"));
  EXPECT_THAT(messageOf("0F0,0B0\n7F0,7B0", 2, 1), HasSubstr("t.csv: rank 1 holds stage 7, but there are 2 stages"));
  EXPECT_THAT(messageOf("F0,B0\nB0,F0", 2, 1),
              HasSubstr("t.csv: rank 1, action 0: B0 of stage 1 waits for F0 of stage 1, which is action 1"));
  EXPECT_FALSE(parseScheduleTable("F0,B0", "t.csv", 0, 1).ok());
  EXPECT_FALSE(parseScheduleTable("F0,B0", "t.csv", 1, INT32_MAX).ok());
}

// Letters of tables in random order, and tables with letters changed: refused or right, never worse.
TEST(ScheduleTable, SurvivesNoise) {
  const std::string letters = "FBIW0123456789.,&;()\"# \n\r\tOVERLAP_";
  RandomSizes random(7);
  int read = 0;
  for (int i = 0; i < 3000; ++i) {
    Schedule schedule = randomSchedule(random);
    std::string text = formatScheduleTable(schedule);
    for (int change = random.integer(0, 3); change > 0; --change)
      text[random.integer(0, static_cast<int>(text.size()) - 1)] =
          letters[random.integer(0, static_cast<int>(letters.size()) - 1)];
    absl::StatusOr<Schedule> parsed =
        parseScheduleTable(text, "t.csv", schedule.placement.numRanks(), schedule.numMicrobatches);
    if (!parsed.ok())
      continue;
    EXPECT_TRUE(runsByHand(*parsed)) << text;
    ++read;
  }
  EXPECT_GE(read, 500);
}
