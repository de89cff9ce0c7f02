//===- PipelineChannels.h - Which channels a placement needs
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_STAGES_SCHEDULES_PIPELINECHANNELS_H
#define BOWLINE_PASSES_STAGES_SCHEDULES_PIPELINECHANNELS_H

#include "passes/Stages/Schedules/PipelineTimeline.h"

namespace bowline {

struct StageChannels {
  std::vector<PipelineChannel> channels;
  /// The channel of each stage that sends; kNoChannel where the stage that receives is on the same rank, or does not
  /// exist.
  std::vector<int> activation, gradient;
};

StageChannels assignChannels(const Placement &placement, bool withGradients);

} // namespace bowline

#endif // BOWLINE_PASSES_STAGES_SCHEDULES_PIPELINECHANNELS_H
