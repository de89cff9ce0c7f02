//===- StreamClocks.h - Commands that are over when a command begins
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_ANALYSIS_STREAMCLOCKS_H
#define BOWLINE_PASSES_ANALYSIS_STREAMCLOCKS_H

#include "dialects/Plan/PlanOps.h"

#include <vector>

namespace bowline {

/// The happens-before order of commands that are issued one after the other to several streams, by vector clocks
/// (Mattern, 1989).
/// Commands of a stream run in order, and a wait is for the last signal of its event that was issued before.
/// O(streams) per signal and wait, O(1) for any other command.
class StreamClocks {
public:
  explicit StreamClocks(size_t streams) : streams(streams), clocks(streams * streams) {}

  /// For each stream, the number of its commands that are over when the next command of `stream` begins.
  llvm::ArrayRef<uint32_t> clock(int64_t stream) const { return {clocks.data() + stream * streams, streams}; }

  /// Issues a command that is no signal or wait; returns its place in the stream, from 1.
  uint32_t issue(int64_t stream) { return ++mutableClock(stream)[stream]; }

  void signal(int64_t stream, int64_t event);

  /// Returns whether the event was signalled before.
  bool isSignalled(int64_t event) const { return static_cast<size_t>(event) < events.size() && !events[event].empty(); }

  /// Issues a wait. Returns whether it adds an ordering; a wait for an event without a signal adds none.
  bool wait(int64_t stream, int64_t event);

private:
  llvm::MutableArrayRef<uint32_t> mutableClock(int64_t stream) { return {clocks.data() + stream * streams, streams}; }

  size_t streams;
  std::vector<uint32_t> clocks;              // the clocks of all streams, one after the other
  std::vector<std::vector<uint32_t>> events; // the clock at each event's last signal; empty if there was none
};

/// Calls `visit(command, slot)` for the commands of a program in the order of issue, `newCall(index of the call)`
/// before each call of a segment.
void walkTimeline(plan::ProgramOp program, llvm::function_ref<void(int64_t call)> newCall,
                  llvm::function_ref<void(mlir::Operation *command, int64_t slot)> visit);

/// The segments of a program, by index.
llvm::SmallVector<plan::SegmentOp> segmentsOf(plan::ProgramOp program);

/// One more than the largest event number in a program.
int64_t eventCount(plan::ProgramOp program);

/// The number of the event that a signal or a wait means in a call of `slot`.
template <typename SignalOrWait> int64_t eventIn(SignalOrWait op, int64_t slot) {
  return op.getEvent() + slot % op.getSlots();
}

} // namespace bowline

#endif // BOWLINE_PASSES_ANALYSIS_STREAMCLOCKS_H
