//===- StreamReach.cpp - How long other streams may run beside the last use of a buffer
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Analysis/StreamReach.h"
#include "passes/Analysis/CommandUses.h"

using namespace mlir;
using namespace bowline;

/// Whether all that `places` counts is over.
static bool covers(ArrayRef<uint32_t> clock, ArrayRef<uint32_t> places) {
  return llvm::all_of(llvm::zip_equal(clock, places), [](auto pair) { return std::get<0>(pair) >= std::get<1>(pair); });
}

StreamReach::StreamReach(plan::ProgramOp program, SymbolTable &symbols, ArrayRef<Operation *> commands,
                         llvm::function_ref<bool(Value)> shares, llvm::function_ref<bool(Value)> staysInCall)
    : points(program.getStreams().size()), callsOfStream(program.getStreams().size()) {
  DenseMap<Operation *, int64_t> positionOf;
  DenseMap<Operation *, SmallVector<Value>> sharedBy;
  for (auto [position, command] : llvm::enumerate(commands)) {
    positionOf[command] = position;
    for (const CommandUse &use : usesOf(command, symbols))
      if (shares(use.buffer))
        sharedBy[command].push_back(use.buffer);
  }
  StreamClocks clocks(program.getStreams().size());
  int64_t issue = 0, call = 0;
  walkTimeline(
      program, [&](int64_t next) { call = next; },
      [&](Operation *command, int64_t slot) {
        int64_t stream = cast<plan::Command>(command).getStreamIndex();
        if (auto signal = dyn_cast<plan::SignalOp>(command))
          return clocks.signal(stream, eventIn(signal, slot));
        if (auto wait = dyn_cast<plan::WaitOp>(command)) {
          clocks.wait(stream, eventIn(wait, slot));
          return;
        }
        auto shared = sharedBy.find(command);
        if (shared != sharedBy.end()) {
          points[stream].push_back({issue++, call, positionOf.lookup(command), clocks.clock(stream).vec()});
          for (Value buffer : shared->second)
            addUse(buffer, staysInCall(buffer), points[stream].back(), stream);
        }
        clocks.issue(stream);
        callsOfStream[stream].push_back(call);
      });
  for (const Uses &uses : all)
    finish(uses, staysInCall(uses.buffer));
}

void StreamReach::addUse(Value buffer, bool staysInCall, const Point &point, int64_t stream) {
  auto [found, isNew] = current.try_emplace(buffer, all.size());
  if (isNew || (staysInCall && all[found->second].call != point.call)) {
    found->second = all.size();
    int64_t firstCall = point.call;
    for (auto [over, calls] : llvm::zip_equal(point.clock, callsOfStream))
      if (over < calls.size())
        firstCall = std::min(firstCall, calls[over]);
    all.push_back(
        {buffer, point.call, firstCall, point.call, point.issue, -1, 0, std::vector<uint32_t>(points.size()), true});
  }
  Uses &uses = all[found->second];
  if (uses.lastIssue == point.issue)
    return;
  uses.endsInOrder = covers(point.clock, uses.places);
  uses.lastIssue = point.issue;
  uses.lastPosition = point.position;
  uses.lastCall = point.call;
  uses.places[stream] = point.clock[stream] + 1;
}

void StreamReach::finish(const Uses &uses, bool staysInCall) {
  auto [found, isNew] =
      reaches.try_emplace(uses.buffer, Reach{uses.lastPosition, uses.firstCall, uses.lastCall, false, true});
  Reach &reach = found->second;
  reach.last = std::max(reach.last, uses.lastPosition);
  reach.firstCall = std::min(reach.firstCall, uses.firstCall);
  reach.lastCall = std::max(reach.lastCall, uses.lastCall);
  reach.endsInOrder &= uses.endsInOrder;
  for (const std::vector<Point> &stream : points) {
    // Clocks of a stream only grow.
    auto after = llvm::partition_point(stream, [&](const Point &point) { return !covers(point.clock, uses.places); });
    if (after == stream.begin())
      continue;
    const Point &beside = *std::prev(after);
    if (beside.issue <= uses.lastIssue)
      continue;
    reach.last = std::max(reach.last, beside.position);
    reach.lastCall = std::max(reach.lastCall, beside.call);
    reach.leavesCall |= staysInCall && beside.call != uses.call;
  }
}
