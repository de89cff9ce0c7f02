//===- StreamClocks.cpp - Commands that are over when a command begins
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Analysis/StreamClocks.h"

using namespace mlir;
using namespace bowline;

void StreamClocks::signal(int64_t stream, int64_t event) {
  if (static_cast<size_t>(event) >= events.size())
    events.resize(event + 1);
  events[event].assign(clock(stream).begin(), clock(stream).end());
}

bool StreamClocks::wait(int64_t stream, int64_t event) {
  if (!isSignalled(event))
    return false;
  bool isNew = false;
  for (auto [own, other] : llvm::zip_equal(mutableClock(stream), events[event])) {
    isNew |= other > own;
    own = std::max(own, other);
  }
  return isNew;
}

SmallVector<plan::SegmentOp> bowline::segmentsOf(plan::ProgramOp program) {
  return llvm::to_vector(program.getBody().front().getOps<plan::SegmentOp>());
}

void bowline::walkTimeline(plan::ProgramOp program, llvm::function_ref<void(int64_t call)> newCall,
                           llvm::function_ref<void(Operation *command, int64_t slot)> visit) {
  SmallVector<plan::SegmentOp> segments = segmentsOf(program);
  ArrayRef<int64_t> timeline = program.getTimeline();
  for (size_t i = 0; i < timeline.size(); i += 2) {
    newCall(static_cast<int64_t>(i / 2));
    for (Operation &command : segments[timeline[i]].getBody().front())
      visit(&command, timeline[i + 1]);
  }
}

int64_t bowline::eventCount(plan::ProgramOp program) {
  int64_t count = 0;
  program.walk([&](Operation *op) {
    if (auto signal = dyn_cast<plan::SignalOp>(op))
      count = std::max<int64_t>(count, signal.getEvent() + signal.getSlots());
    else if (auto wait = dyn_cast<plan::WaitOp>(op))
      count = std::max<int64_t>(count, wait.getEvent() + wait.getSlots());
  });
  return count;
}
