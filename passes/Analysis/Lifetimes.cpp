//===- Lifetimes.cpp - When each buffer of a program is alive
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Analysis/Lifetimes.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace bowline;

SmallVector<CommandUse> bowline::usesOf(Operation *command, SymbolTable &symbols) {
  if (auto copy = dyn_cast<plan::CopyOp>(command))
    return {{copy.getSource(), true, false}, {copy.getDestination(), false, true}};
  auto launch = cast<plan::LaunchOp>(command);
  auto kernel = symbols.lookup<plan::KernelOp>(launch.getKernel());
  SmallVector<CommandUse> uses;
  for (auto [index, buffer] : llvm::enumerate(launch.getOperands())) {
    plan::Access access = kernel.getArgument(index).getAccess();
    uses.push_back({buffer, access != plan::Access::Write, access != plan::Access::Read});
  }
  return uses;
}

namespace {
struct SegmentRange {
  int64_t begin, end; // positions
  int64_t runs;
};
} // namespace

static SmallVector<SegmentRange> segmentRanges(plan::ProgramOp program) {
  SmallVector<SegmentRange> ranges;
  int64_t next = 0;
  for (auto segment : program.getBody().front().getOps<plan::SegmentOp>()) {
    int64_t size = segment.getBody().front().getOperations().size();
    ranges.push_back({next, next + size, 0});
    next += size;
  }
  for (size_t i = 0; i < program.getTimeline().size(); i += 2)
    ++ranges[program.getTimeline()[i]].runs;
  return ranges;
}

Lifetimes::Lifetimes(plan::ProgramOp program, SymbolTable &symbols) {
  DenseSet<Value> readFirst;
  for (auto segment : program.getBody().front().getOps<plan::SegmentOp>())
    for (Operation &command : segment.getBody().front()) {
      auto position = static_cast<int64_t>(ordered.size());
      ordered.push_back(&command);
      for (const CommandUse &use : usesOf(&command, symbols)) {
        plan::BufferKind kind = use.buffer.getDefiningOp<plan::BufferOp>().getKind();
        if (kind != plan::BufferKind::Temporary && kind != plan::BufferKind::Scratch)
          continue;
        auto entry = alive.insert({use.buffer, Interval{position, position}}).first;
        entry->second.last = position;
        if (entry->second.first == position && use.reads)
          readFirst.insert(use.buffer);
      }
    }
  ArrayRef<int64_t> timeline = program.getTimeline();
  for (size_t i = 2; i < timeline.size(); i += 2)
    if (timeline[i] < timeline[i - 2]) {
      for (auto &[buffer, interval] : alive) {
        interval = {0, static_cast<int64_t>(ordered.size()) - 1};
        crossing.insert(buffer);
      }
      return;
    }
  // Values that cross a run of a repeated segment live through all its runs.
  for (const SegmentRange &range : segmentRanges(program)) {
    if (range.runs < 2)
      continue;
    for (auto &[buffer, interval] : alive) {
      bool within = interval.first >= range.begin && interval.last < range.end;
      if (!interval.overlaps({range.begin, range.end - 1}) || (within && !readFirst.contains(buffer)))
        continue;
      crossing.insert(buffer);
      interval.first = std::min(interval.first, range.begin);
      interval.last = std::max(interval.last, range.end - 1);
    }
  }
}
