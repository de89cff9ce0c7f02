//===- TimelineModel.h - Executes pipeline timelines, event by event
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_TEST_UNIT_SCHEDULES_TIMELINEMODEL_H
#define BOWLINE_TEST_UNIT_SCHEDULES_TIMELINEMODEL_H

#include "passes/Stages/Schedules/PipelineTimeline.h"

#include <cstdint>
#include <functional>
#include <string>

namespace bowline::test {

/// How long a computation takes, or a transfer (asked with its send). Any time from 0 on.
using StepDuration = std::function<int64_t(const TimelineStep &)>;

struct ModelResult {
  int64_t makespan = 0;
  /// Empty, or which step of which rank never ran.
  std::string stuck;
  /// Empty, or the first two microbatches that shared a slot while both were alive.
  std::string collision;
};

/// Ranks are threads that issue steps in order and compute where they are; each rank has a queue per name of a channel,
/// in order; a transfer runs when it is in front of both queues. Whatever a step uses must be there by then, which is
/// checked with gtest. Without `waitsForSlots` computations write their slots without a look at the slots' values.
ModelResult executeTimeline(const Placement &placement, const PipelineTimeline &timeline, const StepDuration &duration,
                            bool waitsForSlots = true);

} // namespace bowline::test

#endif // BOWLINE_TEST_UNIT_SCHEDULES_TIMELINEMODEL_H
