//===- TimelineHarness.h - Schedules to make timelines of, and times for their steps
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_TEST_UNIT_SCHEDULES_TIMELINEHARNESS_H
#define BOWLINE_TEST_UNIT_SCHEDULES_TIMELINEHARNESS_H

#include "passes/Stages/Schedules/MakeTimeline.h"
#include "test/Unit/Schedules/ScheduleHarness.h"
#include "test/Unit/Schedules/TimelineModel.h"

#include <string>
#include <vector>

namespace bowline::test {

inline bool isComputation(const TimelineStep &step) { return step.channel == kNoChannel; }
inline bool isSend(const TimelineStep &step) {
  return step.kind == StepKind::SendActivation || step.kind == StepKind::SendGradient;
}
inline bool isGradient(const TimelineStep &step) {
  return step.kind == StepKind::SendGradient || step.kind == StepKind::ReceiveGradient;
}

struct NamedSchedule {
  std::string name;
  Schedule schedule;
};

/// The published schedules on 1 to 8 ranks, a table, and random placements.
const std::vector<NamedSchedule> &timelineSchedules();

Placement randomPlacement(int ranks, int chunks, RandomSizes &random);

PipelineTimeline makeTimeline(const Schedule &schedule, int distance = 1);

/// Computations at unit costs times `scale`; transfers take `transfer`.
StepDuration unitDurations(int64_t scale, int64_t transfer);

/// Times that have nothing to do with each other: even, with rare long ones, with slow transfers, with a slow stage.
/// `random` must live as long as they do.
StepDuration randomDurations(RandomSizes &random, int numStages);

} // namespace bowline::test

#endif // BOWLINE_TEST_UNIT_SCHEDULES_TIMELINEHARNESS_H
