//===- Timeline.cpp - A schedule as a picture in text
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Stages/Schedules/Timeline.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

#include <algorithm>

using namespace bowline;

static std::string labelOf(const Schedule &schedule, const Action &action) {
  int numChunks = schedule.placement.numChunks();
  char letter = letterOf(action.kind);
  if (numChunks == 2 && action.chunk == 1)
    letter = absl::ascii_tolower(letter);
  std::string label = absl::StrCat(std::string(1, letter), action.microbatch);
  if (numChunks > 2)
    absl::StrAppend(&label, ".", action.chunk);
  return label;
}

/// The rank's line, a text per tick.
static std::vector<std::string> ticksOf(const Schedule &schedule, const SimulatedStep &step, size_t rank) {
  const SimulatedRank &simulated = step.ranks[rank];
  std::vector<std::string> ticks(step.makespan, ".");
  const std::vector<Action> &actions = schedule.ranks[rank];
  for (size_t position = 0; position < actions.size(); ++position) {
    int64_t begin = simulated.starts[position], end = simulated.ends[position];
    // The forward of two actions that overlap gets a third, its share at unit costs.
    bool isSecond = position > 0 && actions[position - 1].overlapsNext;
    int64_t third = std::max<int64_t>((end - begin) / 3, 1);
    const Action &first = actions[isSecond ? position - 1 : position];
    int64_t middle = first.kind == ActionKind::Forward ? begin + third : end - third;
    if (actions[position].overlapsNext)
      end = middle;
    if (isSecond)
      begin = middle;
    for (int64_t tick = begin; tick < end; ++tick)
      ticks[tick] = tick > begin ? "-" : absl::StrCat(isSecond ? "=" : "", labelOf(schedule, actions[position]));
  }
  return ticks;
}

std::string bowline::drawTimeline(const Schedule &schedule, const SimulatedStep &step) {
  std::vector<std::vector<std::string>> lines;
  size_t width = 0;
  for (size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    lines.push_back(ticksOf(schedule, step, rank));
    for (const std::string &tick : lines.back())
      width = std::max(width, tick.size());
  }
  size_t rankWidth = std::to_string(lines.size() - 1).size();
  std::string text;
  for (size_t rank = 0; rank < lines.size(); ++rank) {
    std::string line = absl::StrCat("rank ", rank, std::string(rankWidth - std::to_string(rank).size(), ' '));
    for (const std::string &tick : lines[rank])
      absl::StrAppend(&line, " ", tick, std::string(width - tick.size(), ' '));
    absl::StrAppend(&text, absl::StripTrailingAsciiWhitespace(line), "\n");
  }
  return text;
}
