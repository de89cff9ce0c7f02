//===- Lifetimes.cpp - When each buffer of a program is alive
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Analysis/Lifetimes.h"
#include "passes/Analysis/StreamReach.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace bowline;

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

/// Whether the timeline returns to a segment after a later one, and so does not run them one after the other.
static bool takesTurnsIn(plan::ProgramOp program) {
  ArrayRef<int64_t> timeline = program.getTimeline();
  for (size_t i = 2; i < timeline.size(); i += 2)
    if (timeline[i] < timeline[i - 2])
      return true;
  return false;
}

Lifetimes::Lifetimes(plan::ProgramOp program, SymbolTable &symbols) {
  collect(program, symbols);
  takesTurns = takesTurnsIn(program);
  if (program.getStreams().size() > 1)
    reachOverStreams(program, symbols);
  crossRuns(program);
}

void Lifetimes::collect(plan::ProgramOp program, SymbolTable &symbols) {
  for (auto segment : program.getBody().front().getOps<plan::SegmentOp>())
    for (Operation &command : segment.getBody().front()) {
      auto position = static_cast<int64_t>(ordered.size());
      ordered.push_back(&command);
      for (const CommandUse &use : usesOf(&command, symbols)) {
        plan::BufferKind kind = use.buffer.getDefiningOp<plan::BufferOp>().getKind();
        if (kind != plan::BufferKind::Temporary && kind != plan::BufferKind::Scratch)
          continue;
        auto entry = alive.insert({use.buffer, Interval{position, position}}).first;
        Operation *&only = onlySegment.try_emplace(use.buffer, segment).first->second;
        if (only != segment)
          only = nullptr;
        entry->second.last = position;
        lastUse[use.buffer] = position;
        if (entry->second.first == position && use.reads)
          readFirst.insert(use.buffer);
      }
    }
}

bool Lifetimes::staysInRun(Value buffer) const {
  return onlySegment.lookup(buffer) && !readFirst.contains(buffer) &&
         (!takesTurns || buffer.getDefiningOp<plan::BufferOp>().getSlots() == 1);
}

void Lifetimes::reachOverStreams(plan::ProgramOp program, SymbolTable &symbols) {
  // Where segments take turns, a buffer that lives in several has its memory for itself.
  auto shares = [&](Value buffer) { return alive.contains(buffer) && (!takesTurns || staysInRun(buffer)); };
  StreamReach reach(program, symbols, ordered, shares, [&](Value buffer) { return staysInRun(buffer); });
  for (auto &[buffer, interval] : alive) {
    if (!shares(buffer))
      continue;
    StreamReach::Reach end = reach.of(buffer);
    interval.last = std::max(interval.last, end.last);
    if (end.leavesCall)
      leavesRun.insert(buffer);
    if (!end.endsInOrder)
      besides.insert(buffer);
  }
}

bool Lifetimes::repeats(int64_t position) const {
  return llvm::any_of(repeated, [&](const Interval &range) { return range.overlaps({position, position}); });
}

void Lifetimes::crossRuns(plan::ProgramOp program) {
  if (takesTurns) {
    repeated.push_back({0, static_cast<int64_t>(ordered.size()) - 1});
    // Runs execute one at a time: buffers of one run alone share memory with those of other runs.
    for (auto &[buffer, interval] : alive) {
      if (staysInRun(buffer) && !leavesRun.contains(buffer))
        continue;
      interval = {0, static_cast<int64_t>(ordered.size()) - 1};
      crossing.insert(buffer);
    }
    return;
  }
  // Values that cross a run of a repeated segment live through all its runs.
  for (const SegmentRange &range : segmentRanges(program)) {
    if (range.runs < 2)
      continue;
    repeated.push_back({range.begin, range.end - 1});
    for (auto &[buffer, interval] : alive) {
      bool within = interval.first >= range.begin && interval.last < range.end;
      if (!interval.overlaps({range.begin, range.end - 1}) ||
          (within && !readFirst.contains(buffer) && !leavesRun.contains(buffer)))
        continue;
      crossing.insert(buffer);
      interval.first = std::min(interval.first, range.begin);
      interval.last = std::max(interval.last, range.end - 1);
    }
  }
}
