//===- TimelineSlots.h - How many microbatches' buffers each stage needs
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_STAGES_SCHEDULES_TIMELINESLOTS_H
#define BOWLINE_PASSES_STAGES_SCHEDULES_TIMELINESLOTS_H

#include "passes/Stages/Schedules/PipelineTimeline.h"

#include "absl/status/status.h"

namespace bowline {

/// Fills `timeline.slots` from the other members. Returns Internal if the timeline deadlocks.
///
/// A class of buffers needs as many slots as the largest (newest - oldest microbatch alive + 1). With one fewer these
/// two would share one. Where a computation of the same rank ends a life, the order of steps alone decides when.
///
/// The ends of sends are taken from runs at unit costs (see runTimeline), one with short transfers and one with
/// transfers as long as a forward. Such a run keeps all waits for slots that PipelineTimeline.h asks for, although it
/// does not know them, because no microbatch further back than the window was alive. Computations and transfers take
/// time in it, so that waits form no cycle: at all true times, nothing waits forever.
absl::Status countSlots(const Placement &placement, bool trains, PipelineTimeline &timeline);

} // namespace bowline

#endif // BOWLINE_PASSES_STAGES_SCHEDULES_TIMELINESLOTS_H
