//===- Timeline.h - A schedule as a picture in text
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_STAGES_SCHEDULES_TIMELINE_H
#define BOWLINE_PASSES_STAGES_SCHEDULES_TIMELINE_H

#include "passes/Stages/Schedules/Simulator.h"

#include <string>

namespace bowline {

/// One line per rank, one column per tick: the kind and the microbatch where an action starts, '-' while it goes on,
/// '.' where the rank idles. With two chunks, small letters are chunk 1; with more, ".c" follows. "=" before an action:
/// it overlaps the one before it, which is shown as if first. For steps of a few hundred ticks with unit costs.
std::string drawTimeline(const Schedule &schedule, const SimulatedStep &step);

} // namespace bowline

#endif // BOWLINE_PASSES_STAGES_SCHEDULES_TIMELINE_H
