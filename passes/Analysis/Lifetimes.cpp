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
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace bowline;

namespace {
struct SegmentRange {
  int64_t begin, end; // positions
  int64_t runs;
};
} // namespace

/// The segments of a program in the order of their first calls, as they count for positions; those that are not called
/// come last.
static SmallVector<plan::SegmentOp> segmentsByFirstCall(plan::ProgramOp program) {
  SmallVector<plan::SegmentOp> all(program.getBody().front().getOps<plan::SegmentOp>());
  llvm::SetVector<int64_t> order;
  for (size_t i = 0; i < program.getTimeline().size(); i += 2)
    order.insert(program.getTimeline()[i]);
  order.insert_range(llvm::seq<int64_t>(0, all.size()));
  return llvm::map_to_vector(order, [&](int64_t index) { return all[index]; });
}

/// The positions of each segment, by its place in the program.
static SmallVector<SegmentRange> segmentRanges(plan::ProgramOp program) {
  llvm::DenseMap<Operation *, SegmentRange> rangeOf;
  int64_t next = 0;
  for (plan::SegmentOp segment : segmentsByFirstCall(program)) {
    int64_t size = segment.getBody().front().getOperations().size();
    rangeOf[segment] = {next, next + size, 0};
    next += size;
  }
  SmallVector<SegmentRange> ranges;
  for (auto segment : program.getBody().front().getOps<plan::SegmentOp>())
    ranges.push_back(rangeOf.lookup(segment));
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
  crossRuns(program, symbols);
}

void Lifetimes::collect(plan::ProgramOp program, SymbolTable &symbols) {
  for (plan::SegmentOp segment : segmentsByFirstCall(program))
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
  // Where segments take turns, crossTurns looks at buffers that live in several calls.
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

void Lifetimes::crossRuns(plan::ProgramOp program, SymbolTable &symbols) {
  if (takesTurns)
    return crossTurns(program, symbols);
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

void Lifetimes::crossTurns(plan::ProgramOp program, SymbolTable &symbols) {
  repeated.push_back({0, static_cast<int64_t>(ordered.size()) - 1});
  SmallVector<SegmentRange> ranges = segmentRanges(program);
  ArrayRef<int64_t> timeline = program.getTimeline();
  // Runs execute one at a time: buffers of one run alone share memory with those of other runs.
  auto crosses = [&](Value buffer) {
    return alive.contains(buffer) && (!staysInRun(buffer) || leavesRun.contains(buffer));
  };
  StreamReach reach(
      program, symbols, ordered, [&](Value buffer) { return alive.contains(buffer); },
      [&](Value buffer) { return !crosses(buffer); });
  for (auto &[buffer, interval] : alive) {
    if (!crosses(buffer))
      continue;
    crossing.insert(buffer);
    // All that runs in between has other memory.
    StreamReach::Reach calls = reach.of(buffer);
    for (int64_t call = calls.firstCall; call <= calls.lastCall; ++call) {
      const SegmentRange &range = ranges[timeline[2 * call]];
      interval.first = std::min(interval.first, range.begin);
      interval.last = std::max(interval.last, range.end - 1);
    }
  }
}
