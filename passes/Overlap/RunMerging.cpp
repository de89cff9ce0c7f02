//===- RunMerging.cpp - The last run of a segment and the segment behind it become one
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Overlap/RunMerging.h"
#include "passes/Analysis/Lifetimes.h"
#include "passes/Analysis/StreamClocks.h"
#include "passes/Overlap/RunCopy.h"

using namespace mlir;
using namespace bowline;

/// Every segment runs, all its runs together and after those of the one in front of it, on one stream.
bool RunMerging::isInOrder() {
  ArrayRef<int64_t> timeline = program.getTimeline();
  int64_t next = 0;
  for (size_t i = 0; i < timeline.size(); i += 2) {
    bool again = i > 0 && timeline[i] == timeline[i - 2];
    if (!again && timeline[i] != next++)
      return false;
  }
  return program.getStreams().size() == 1;
}

int64_t RunMerging::runsOf(int64_t segment) {
  int64_t runs = 0;
  for (size_t i = 0; i < program.getTimeline().size(); i += 2)
    runs += program.getTimeline()[i] == segment;
  return runs;
}

static bool hasSlots(Value buffer) { return buffer.getDefiningOp<plan::BufferOp>().getSlots() > 1; }

/// Whether a reduction could begin before `earlier` is over. Slots say which call a command is in, so that `later` may
/// have none where it gets those of the other's last call.
bool RunMerging::isWorthIt(plan::SegmentOp earlier, plan::SegmentOp later) {
  llvm::DenseSet<Value> written;
  for (Operation &command : earlier.getBody().front())
    for (const CommandUse &use : usesOf(&command, symbols))
      if (use.writes)
        written.insert(use.buffer);
  bool reduces = false;
  for (Operation &command : later.getBody().front()) {
    if (llvm::any_of(command.getOperands(), hasSlots))
      return false;
    auto collective = dyn_cast<plan::CollectiveOp>(command);
    if (!collective)
      continue;
    reduces |= llvm::any_of(collective.getSources(), [&](Value source) { return written.contains(source); });
  }
  return reduces;
}

int64_t RunMerging::run() {
  if (!isInOrder())
    return 0;
  int64_t merged = 0;
  for (int64_t i = 0; i + 1 < static_cast<int64_t>(segmentsOf(program).size());) {
    SmallVector<plan::SegmentOp> segments = segmentsOf(program);
    if (runsOf(i + 1) != 1 || !isWorthIt(segments[i], segments[i + 1])) {
      ++i;
      continue;
    }
    merge(i);
    ++merged;
  }
  return merged;
}

void RunMerging::merge(int64_t earlier) {
  SmallVector<plan::SegmentOp> segments = segmentsOf(program);
  plan::SegmentOp first = segments[earlier], second = segments[earlier + 1];
  bool isOnly = runsOf(earlier) == 1;
  if (isOnly) {
    Block &body = second.getBody().front();
    body.getOperations().splice(body.begin(), first.getBody().front().getOperations());
  } else {
    copyRun(first, second.getBody().front(), symbols);
  }
  second.setName((first.getName() + "+" + second.getName()).str());
  SmallVector<int64_t> timeline;
  ArrayRef<int64_t> old = program.getTimeline();
  for (size_t i = 0; i < old.size(); i += 2) {
    bool isLastRun = old[i] == earlier && old[i + 2] == earlier + 1;
    if (isLastRun)
      continue;
    int64_t slot = old[i] == earlier + 1 ? old[i - 1] : old[i + 1];
    timeline.append({isOnly && old[i] > earlier ? old[i] - 1 : old[i], slot});
  }
  program.setTimeline(timeline);
  if (isOnly)
    first.erase();
}
