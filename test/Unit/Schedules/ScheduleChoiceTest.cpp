//===- ScheduleChoiceTest.cpp - Values of --schedule
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Stages/Schedules/ScheduleChoice.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace bowline;
using testing::HasSubstr;

TEST(ScheduleChoice, ReadsEveryForm) {
  auto parse = [](const char *text) { return parseScheduleChoice(text).value(); };
  EXPECT_EQ(parse("gpipe"), (ScheduleChoice{ScheduleKind::GPipe, 1, ""}));
  EXPECT_EQ(parse("1f1b"), (ScheduleChoice{ScheduleKind::OneForwardOneBackward, 1, ""}));
  EXPECT_EQ(parse("interleaved:3"), (ScheduleChoice{ScheduleKind::Interleaved, 3, ""}));
  EXPECT_EQ(parse("breadth_first:65535"), (ScheduleChoice{ScheduleKind::BreadthFirst, 65535, ""}));
  EXPECT_EQ(parse("zb_h1"), (ScheduleChoice{ScheduleKind::ZbH1, 1, ""}));
  EXPECT_EQ(parse("zb_h2"), (ScheduleChoice{ScheduleKind::ZbH2, 1, ""}));
  EXPECT_EQ(parse("zb_v"), (ScheduleChoice{ScheduleKind::ZbV, 2, ""}));
  EXPECT_EQ(parse("dualpipe_v"), (ScheduleChoice{ScheduleKind::DualPipeV, 2, ""}));
  EXPECT_EQ(parse("a/b:2/gpipe.csv"), (ScheduleChoice{ScheduleKind::Table, 0, "a/b:2/gpipe.csv"}));
  EXPECT_EQ(parse("MINE.CSV").kind, ScheduleKind::Table);
  for (const char *text :
       {"gpipe", "1f1b", "interleaved:3", "breadth_first:2", "zb_h1", "zb_h2", "zb_v", "dualpipe_v", "mine.csv"})
    EXPECT_EQ(toString(parse(text)), text);
}

TEST(ScheduleChoice, NamesTheNearest) {
  const std::pair<const char *, const char *> cases[] = {
      {"gpip", "'gpipe'"},
      {"GPipe", "'gpipe'"},
      {"1F1B", "'1f1b'"},
      {"1f1", "'1f1b'"},
      {"zb-h1", "'zb_h1'"},
      {"zbv", "'zb_v'"},
      {"ZBH2", "'zb_h2'"},
      {"dualpipe", "'dualpipe_v'"},
      {"DualPipeV", "'dualpipe_v'"},
      {"interleave:4", "'interleaved:4'"},
      {"breadth-first", "'breadth_first:2'"},
      {"interleaved", "'interleaved:2'"},
      {"interleaved:", "'interleaved:2'"},
      {"interleaved:0", "'interleaved:2'"},
      {"interleaved:-1", "'interleaved:2'"},
      {"interleaved:two", "'interleaved:2'"},
      {"interleaved:2x", "'interleaved:2'"},
      {"breadth_first:65536", "'breadth_first:65535'"},
      {"breadth_first:99999999999999999999", "'breadth_first:65535'"},
      {"1f1b:2", "'1f1b', or, if each rank has so many layers, 'interleaved:2'"},
      {"1f1b:two", "'1f1b', or, if each rank has so many layers, 'interleaved:2'"},
      {"interleavd:x", "'interleaved:2'"},
      {"interleavd:0", "'interleaved:2'"},
      {"interleavd:123456789", "'interleaved:65535'"},
      {"zb_v:2", "'zb_v'"},
      {"gpipe:", "'gpipe'"},
  };
  for (auto [text, nearest] : cases) {
    std::string message(parseScheduleChoice(text).status().message());
    EXPECT_THAT(message, testing::AnyOf(HasSubstr(std::string("the nearest is ") + nearest),
                                        HasSubstr(std::string(", as in ") + nearest)))
        << text;
    // Names can be read.
    for (std::string_view rest(nearest); rest.find('\'') != rest.npos;) {
      rest.remove_prefix(rest.find('\'') + 1);
      EXPECT_TRUE(parseScheduleChoice(std::string(rest.substr(0, rest.find('\'')))).ok()) << message;
      rest.remove_prefix(rest.find('\'') + 1);
    }
  }
}

TEST(ScheduleChoice, SurvivesAnything) {
  EXPECT_THAT(std::string(parseScheduleChoice("").status().message()), HasSubstr("there is no schedule ''"));
  EXPECT_FALSE(parseScheduleChoice(std::string(1 << 20, 'z')).ok());
  EXPECT_LT(parseScheduleChoice(std::string(1 << 20, ':')).status().message().size(), 1000u);
}
