//===- MakeTimeline.h - From a schedule to the steps that each rank issues
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_STAGES_SCHEDULES_MAKETIMELINE_H
#define BOWLINE_PASSES_STAGES_SCHEDULES_MAKETIMELINE_H

#include "passes/Stages/Schedules/PipelineTimeline.h"

#include "absl/status/statusor.h"

namespace bowline {

struct TimelineOptions {
  /// The maximal number of computations by which a receive is issued ahead of the computation that needs it, so that it
  /// runs beside them. The order of all transfers may force a later issue. If a stage takes its microbatches in order,
  /// received values need at most this many additional slots.
  int prefetchDistance = 1;
};

/// Makes the timeline of a training step. Computations keep the schedule's order, overlapping actions one after the
/// other. Sends are issued as early as the order of all transfers allows. The timeline cannot deadlock, whatever the
/// times of its steps. InvalidArgument for an invalid schedule (Validator.h) or a negative distance.
absl::StatusOr<PipelineTimeline> makePipelineTimeline(const Schedule &schedule, const TimelineOptions &options = {});

/// The forward pass of one microbatch through all stages, for evaluation. Nothing is stashed. Its channels are those
/// for activations of every training timeline with this placement. InvalidArgument for a negative distance.
absl::StatusOr<PipelineTimeline> makeForwardTimeline(const Placement &placement, const TimelineOptions &options = {});

} // namespace bowline

#endif // BOWLINE_PASSES_STAGES_SCHEDULES_MAKETIMELINE_H
