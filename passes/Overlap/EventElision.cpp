//===- EventElision.cpp - Removal of waits for commands that are over anyway
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Overlap/EventElision.h"
#include "passes/Analysis/StreamClocks.h"

#include <set>

using namespace mlir;
using namespace bowline;

EventElision::Result EventElision::run() {
  sortWaits();
  Result result;
  result.waits = removeWaits();
  result.signals = removeSignals();
  removeEmptyFirstSegment();
  renumber();
  return result;
}

/// Sorts waits by the time at which the signal was issued for which the wait of the last call waits, the latest first.
void EventElision::sortWaits() {
  DenseMap<int64_t, int64_t> issued; // by event
  DenseMap<Operation *, int64_t> lastSignal;
  int64_t next = 0;
  walkTimeline(
      program, [](int64_t) {},
      [&](Operation *command, int64_t slot) {
        ++next;
        if (auto signal = dyn_cast<plan::SignalOp>(command))
          issued[eventIn(signal, slot)] = next;
        else if (auto wait = dyn_cast<plan::WaitOp>(command))
          lastSignal[wait] = issued.lookup(eventIn(wait, slot));
      });
  for (plan::SegmentOp segment : segmentsOf(program)) {
    SmallVector<Operation *> group;
    auto flush = [&](Operation *end) {
      llvm::stable_sort(group, [&](Operation *a, Operation *b) { return lastSignal.lookup(a) > lastSignal.lookup(b); });
      for (Operation *wait : group)
        if (end)
          wait->moveBefore(end);
        else
          wait->moveBefore(&segment.getBody().front(), segment.getBody().front().end());
      group.clear();
    };
    for (Operation &command : llvm::make_early_inc_range(segment.getBody().front())) {
      bool isWait = isa<plan::WaitOp>(command);
      bool joins = isWait && (group.empty() ||
                              cast<plan::WaitOp>(group.front()).getStream() == cast<plan::WaitOp>(command).getStream());
      if (!joins)
        flush(&command);
      if (isWait)
        group.push_back(&command);
    }
    flush(nullptr);
  }
}

int64_t EventElision::removeWaits() {
  StreamClocks clocks(program.getStreams().size());
  llvm::DenseSet<Operation *> useful;
  walkTimeline(
      program, [](int64_t) {},
      [&](Operation *command, int64_t slot) {
        int64_t stream = cast<plan::Command>(command).getStreamIndex();
        if (auto signal = dyn_cast<plan::SignalOp>(command))
          return clocks.signal(stream, eventIn(signal, slot));
        auto wait = dyn_cast<plan::WaitOp>(command);
        if (!wait)
          clocks.issue(stream);
        else if (clocks.wait(stream, eventIn(wait, slot)) || !clocks.isSignalled(eventIn(wait, slot)))
          useful.insert(wait); // or for the checker to refuse
      });
  int64_t removed = 0;
  for (plan::SegmentOp segment : segmentsOf(program))
    for (auto wait : llvm::make_early_inc_range(segment.getBody().front().getOps<plan::WaitOp>()))
      if (!useful.contains(wait)) {
        wait.erase();
        ++removed;
      }
  return removed;
}

int64_t EventElision::removeSignals() {
  DenseMap<int64_t, Operation *> last; // by event
  llvm::DenseSet<Operation *> useful;
  walkTimeline(
      program, [](int64_t) {},
      [&](Operation *command, int64_t slot) {
        if (auto signal = dyn_cast<plan::SignalOp>(command))
          last[eventIn(signal, slot)] = signal;
        else if (auto wait = dyn_cast<plan::WaitOp>(command))
          useful.insert(last.lookup(eventIn(wait, slot)));
      });
  int64_t removed = 0;
  for (plan::SegmentOp segment : segmentsOf(program))
    for (auto signal : llvm::make_early_inc_range(segment.getBody().front().getOps<plan::SignalOp>()))
      if (!useful.contains(signal)) {
        signal.erase();
        ++removed;
      }
  return removed;
}

void EventElision::removeEmptyFirstSegment() {
  SmallVector<plan::SegmentOp> segments = segmentsOf(program);
  if (segments.size() < 2 || !segments.front().getBody().front().empty())
    return;
  segments.front().erase();
  SmallVector<int64_t> timeline;
  for (size_t i = 0; i < program.getTimeline().size(); i += 2)
    if (program.getTimeline()[i] > 0)
      timeline.append({program.getTimeline()[i] - 1, program.getTimeline()[i + 1]});
  program.setTimeline(timeline);
}

void EventElision::renumber() {
  // The events of one operation are next to each other, and stay so, because all of them count as used.
  std::set<int64_t> used;
  auto use = [&](auto op) {
    for (int64_t slot = 0; slot < static_cast<int64_t>(op.getSlots()); ++slot)
      used.insert(op.getEvent() + slot);
  };
  program.walk([&](plan::SignalOp signal) { use(signal); });
  program.walk([&](plan::WaitOp wait) { use(wait); });
  DenseMap<int64_t, int64_t> number;
  for (int64_t event : used)
    number.try_emplace(event, number.size());
  program.walk([&](plan::SignalOp signal) { signal.setEvent(number.lookup(signal.getEvent())); });
  program.walk([&](plan::WaitOp wait) { wait.setEvent(number.lookup(wait.getEvent())); });
}
