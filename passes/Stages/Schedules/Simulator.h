//===- Simulator.h - Time and memory of a schedule
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_STAGES_SCHEDULES_SIMULATOR_H
#define BOWLINE_PASSES_STAGES_SCHEDULES_SIMULATOR_H

#include "passes/Stages/Schedules/Schedule.h"

#include "absl/status/statusor.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace bowline {

/// The durations of the actions of one stage in ticks, an arbitrary unit that all stages share.
struct StageCosts {
  int64_t forward = 1;
  int64_t backwardInput = 1;
  int64_t backwardWeight = 1;
  /// The cost of B; none means the sum of I and W.
  std::optional<int64_t> backward;

  int64_t of(ActionKind kind) const;
};

struct ScheduleCosts {
  /// One entry per stage, or one entry for all stages. The default is unit costs: F = I = W = 1 and B = 2.
  std::vector<StageCosts> stages = {StageCosts{}};
  /// The time from the end of an action until a stage on another rank can use its result. Other than that transfers are
  /// free: they run beside the actions and never share a link.
  int64_t transfer = 0;
  /// The cost of a forward and a backward that overlap; none means the sum of both.
  std::optional<int64_t> overlapped;
};

/// The peak numbers of activations that a rank holds. Each (chunk, microbatch) counts from its F.
struct PeakActivations {
  /// The peak if activations are freed by B or I. Exact if backwards are not split.
  int untilInput = 0;
  /// The peak if activations are freed by B or W, because W needs everything that I needed.
  int untilWeight = 0;

  bool operator==(const PeakActivations &) const = default;
};

struct SimulatedRank {
  std::vector<int64_t> starts, ends; // ticks, per action. Actions that overlap: those of their block.
  int64_t busy = 0;                  // sum of all actions (of blocks, where they overlap)
  /// The idle time of the whole step: makespan - busy.
  int64_t bubble = 0;
  /// The idle time between the rank's own first and last action. The zero-bubble papers count only this: without a
  /// barrier between steps, a rank fills its idle time at the end with the start of the next step.
  int64_t innerBubble = 0;
  PeakActivations peak;
};

struct SimulatedStep {
  int64_t makespan = 0;
  std::vector<SimulatedRank> ranks;

  int64_t maxBubble() const;
  int64_t maxInnerBubble() const;
  PeakActivations maxPeak() const;
};

/// Runs a step: every action starts as soon as it can. InvalidArgument for a schedule that is not valid (see
/// Validator.h) and for costs that are negative, not one or one per stage, or whose sum overflows.
absl::StatusOr<SimulatedStep> simulateSchedule(const Schedule &schedule, const ScheduleCosts &costs = {});

} // namespace bowline

#endif // BOWLINE_PASSES_STAGES_SCHEDULES_SIMULATOR_H
