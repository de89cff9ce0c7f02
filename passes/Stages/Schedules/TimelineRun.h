//===- TimelineRun.h - When the steps of a timeline run
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_STAGES_SCHEDULES_TIMELINERUN_H
#define BOWLINE_PASSES_STAGES_SCHEDULES_TIMELINERUN_H

#include "passes/Stages/Schedules/PipelineTimeline.h"

#include "absl/status/statusor.h"

namespace bowline {

struct TimelineTimes {
  /// Per rank and step, in ticks: when a computation starts, when a transfer ends.
  std::vector<std::vector<int64_t>> ranks;
};

/// The duration of a computation in units: 1 for F, I and W, 2 for B.
int64_t unitCostOf(StepKind computation);

struct TimelineCosts {
  int64_t unit = 1; // ticks
  int64_t transfer = 1;
};

/// Simulates a timeline with unlimited slots. Returns Internal, naming a rank and a step, if the timeline does not run
/// to its end.
absl::StatusOr<TimelineTimes> runTimeline(const PipelineTimeline &timeline, const TimelineCosts &costs);

} // namespace bowline

#endif // BOWLINE_PASSES_STAGES_SCHEDULES_TIMELINERUN_H
