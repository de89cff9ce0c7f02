//===- TimelineHarness.cpp - Schedules to make timelines of, and times for their steps
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/Unit/Schedules/TimelineHarness.h"
#include "passes/Stages/Schedules/ScheduleTable.h"
#include "passes/Stages/Schedules/TimelineRun.h"

#include "absl/strings/str_cat.h"

#include <numeric>
#include <utility>

using namespace bowline;
using namespace bowline::test;

/// All forwards, then all backwards in two parts, with any placement; weight gradients in one go at the end.
static Schedule makeBreadthFirstWith(Placement placement, int microbatches) {
  Schedule schedule{std::move(placement), microbatches, {}};
  schedule.ranks.resize(schedule.placement.numRanks());
  auto add = [&](ActionKind kind, int stage) {
    for (int microbatch = 0; microbatch < microbatches; ++microbatch)
      schedule.ranks[schedule.placement.rankOf(stage)].push_back(
          {kind, false, static_cast<uint16_t>(schedule.placement.chunkOf(stage)), microbatch});
  };
  int numStages = schedule.placement.numStages();
  for (int stage = 0; stage < numStages; ++stage)
    add(ActionKind::Forward, stage);
  for (int stage = numStages - 1; stage >= 0; --stage)
    add(ActionKind::BackwardInput, stage);
  for (int stage = numStages - 1; stage >= 0; --stage)
    add(ActionKind::BackwardWeight, stage);
  return schedule;
}

Placement bowline::test::randomPlacement(int ranks, int chunks, RandomSizes &random) {
  std::vector<int> stages(static_cast<size_t>(ranks) * chunks);
  std::iota(stages.begin(), stages.end(), 0);
  for (size_t i = stages.size() - 1; i > 0; --i)
    std::swap(stages[i], stages[random.integer(0, static_cast<int>(i))]);
  std::vector<std::vector<int>> perRank(ranks);
  for (size_t i = 0; i < stages.size(); ++i)
    perRank[i % ranks].push_back(stages[i]);
  return Placement(std::move(perRank));
}

/// 3 ranks, microbatches out of order, split and whole backwards, a placement of its own.
static constexpr char kTable[] = "0F1,0F0,5F1,5F0,5B1,5I0,0B1,5W0,0B0\n"
                                 "1F1,1F0,3F1,3F0,3I1,3W1,3B0,1I1,1I0,1W1,1W0\n"
                                 "2F1,2F0,4F1,4F0,4B1,4B0,2I1,2B0,2W1\n";

const std::vector<NamedSchedule> &bowline::test::timelineSchedules() {
  static const std::vector<NamedSchedule> schedules = [] {
    std::vector<NamedSchedule> made;
    for (const char *name :
         {"gpipe", "1f1b", "interleaved:2", "interleaved:4", "breadth_first:2", "zb_h1", "zb_h2", "zb_v", "dualpipe_v"})
      for (int ranks = 1; ranks <= 8; ++ranks)
        for (int microbatches : {1, 2, 4, 7, 8, 16, 24})
          if (absl::StatusOr<Schedule> schedule = makeSchedule(choose(name), ranks, microbatches); schedule.ok())
            made.push_back({absl::StrCat(name, " P=", ranks, " M=", microbatches), *std::move(schedule)});
    made.push_back({"table", parseScheduleTable(kTable, "table.csv", 3, 2).value()});
    RandomSizes random(11);
    for (int i = 0; i < 40; ++i) {
      int ranks = random.integer(1, 8), chunks = random.integer(1, 3), microbatches = random.integer(1, 6);
      made.push_back(
          {absl::StrCat("placement ", i), makeBreadthFirstWith(randomPlacement(ranks, chunks, random), microbatches)});
    }
    return made;
  }();
  return schedules;
}

PipelineTimeline bowline::test::makeTimeline(const Schedule &schedule, int distance) {
  return makePipelineTimeline(schedule, {distance}).value();
}

StepDuration bowline::test::unitDurations(int64_t scale, int64_t transfer) {
  return [=](const TimelineStep &step) { return isComputation(step) ? scale * unitCostOf(step.kind) : transfer; };
}

StepDuration bowline::test::randomDurations(RandomSizes &random, int numStages) {
  int computation = random.integer(0, 30), transfer = random.integer(0, 30), rare = random.integer(0, 500);
  int slowStage = random.integer(0, numStages - 1), slowness = random.integer(1, 20);
  return [=, &random](const TimelineStep &step) {
    int64_t time = random.integer(0, isComputation(step) ? computation : transfer);
    if (random.integer(0, 19) == 0)
      time += rare;
    return step.stage == slowStage ? time * slowness : time;
  };
}
