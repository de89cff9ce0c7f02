//===- StashSlots.h - How many microbatches a stash must hold at once
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_LOCAL_STAGES_STASHSLOTS_H
#define BOWLINE_PASSES_LOCAL_STAGES_STASHSLOTS_H

#include "passes/Stages/Schedules/PipelineTimeline.h"

#include <set>
#include <utility>

namespace bowline {

/// The number of slots that a value needs which the step `writer` (stage and kind) computes and `readers` use, if the
/// steps of a rank run one after the other: microbatch m has slot m % slots, from its writer until its last reader.
/// Transfers end later than they are issued; StageSlots has the slots that they need.
int64_t slotsInOrder(const std::vector<TimelineStep> &steps, std::pair<int64_t, StepKind> writer,
                     const std::set<std::pair<int64_t, StepKind>> &readers);

} // namespace bowline

#endif // BOWLINE_PASSES_LOCAL_STAGES_STASHSLOTS_H
