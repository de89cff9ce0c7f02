//===- ScheduleProgress.h - Which actions of a schedule can run, and when
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_STAGES_SCHEDULES_SCHEDULEPROGRESS_H
#define BOWLINE_PASSES_STAGES_SCHEDULES_SCHEDULEPROGRESS_H

#include "passes/Stages/Schedules/Schedule.h"

#include <functional>
#include <optional>
#include <vector>

namespace bowline {

/// An output of another action that an action needs as input, for the same microbatch.
struct NeededOutput {
  bool backward; // true for the result of B or I, false for that of F
  int stage;
};
struct NeededOutputs {
  NeededOutput outputs[2];
  int count = 0;
};
NeededOutputs inputsOf(const Schedule &schedule, int rank, const Action &action);

/// The position after the block that begins at `position`: one further, or two if its actions overlap.
size_t blockEnd(const std::vector<Action> &actions, size_t position);

/// Simulates a schedule until every rank ends or blocks: each rank runs its blocks in order, as soon as their inputs
/// are complete. Linear in the number of actions. The schedule's actions must be in range, without duplicates.
class ScheduleProgress {
public:
  /// Returns the end time of a block that starts at time `start`, in any unit.
  using EndOfBlock = std::function<int64_t(int rank, size_t position, int64_t start)>;

  /// `transfer` is the time from the end of a block until a block on another rank can use its output.
  ScheduleProgress(const Schedule &schedule, int64_t transfer, EndOfBlock endOfBlock);

  /// True when every rank ran all of its actions.
  bool finished() const;

  /// The first action of the rank that did not run.
  size_t positionOf(int rank) const { return positions[rank]; }

  /// Returns when the last action of the rank that ran ended; 0 when none did.
  int64_t endOf(int rank) const { return ends[rank]; }

  struct Wait {
    Action action;       // an action of the block that could not start
    NeededOutput needed; // the output that it waits for
  };
  /// Returns the reason why the rank is blocked. The rank must be blocked.
  Wait waitOf(int rank) const;

private:
  size_t indexOf(NeededOutput output, int microbatch) const;
  bool isReady(int rank, int64_t &start) const;
  void runBlock(int rank, int64_t start);
  void publish(int rank, const Action &action, int64_t end);

  const Schedule &schedule;
  int64_t transfer;
  EndOfBlock endOfBlock;
  std::vector<size_t> positions;
  std::vector<int64_t> ends;
  std::vector<int64_t> available; // per output and microbatch; kNotYet before
  std::vector<int> runnable;      // ranks to look at
};

} // namespace bowline

#endif // BOWLINE_PASSES_STAGES_SCHEDULES_SCHEDULEPROGRESS_H
