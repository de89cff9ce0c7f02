//===- Lifetimes.h - When each buffer of a program is alive
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_ANALYSIS_LIFETIMES_H
#define BOWLINE_PASSES_ANALYSIS_LIFETIMES_H

#include "passes/Analysis/CommandUses.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

namespace bowline {

/// A range of command positions. Positions count the commands of a program's segments, each segment once, in the order
/// of their first calls.
struct Interval {
  int64_t first = 0;
  int64_t last = 0; // inclusive

  bool overlaps(const Interval &other) const { return first <= other.last && other.first <= last; }
};

/// The lifetimes of a program's temporary and scratch buffers. If a segment runs several times and a buffer's value
/// crosses the start or end of a run, the buffer is alive during the whole segment. If the timeline returns to earlier
/// segments, a buffer whose value crosses runs is alive during all segments that run from its first use to its last.
///
/// With several streams a lifetime ends where all commands issued later are ordered, by stream or event, after all of
/// the buffer's uses. So the program must contain its events already.
class Lifetimes {
public:
  Lifetimes(plan::ProgramOp program, mlir::SymbolTable &symbols);

  /// The lifetime of each buffer, in the order of first use.
  const llvm::MapVector<mlir::Value, Interval> &intervals() const { return alive; }

  /// Returns whether the value of a temporary buffer crosses the start or end of a run of a repeated segment, so that
  /// the buffer keeps its memory during all runs of that segment.
  bool crossesRuns(mlir::Value buffer) const { return crossing.contains(buffer); }

  /// Returns whether the command at `position` is the last use of `buffer` and begins after all other uses end, so that
  /// it may write its results into that memory.
  bool diesAt(mlir::Value buffer, int64_t position) const {
    return lastUse.lookup(buffer) == position && !besides.contains(buffer) &&
           !(crossesRuns(buffer) && repeats(position));
  }

  /// All commands of the program, by position.
  llvm::ArrayRef<mlir::Operation *> commands() const { return ordered; }

private:
  void collect(plan::ProgramOp program, mlir::SymbolTable &symbols);
  void reachOverStreams(plan::ProgramOp program, mlir::SymbolTable &symbols);
  void crossRuns(plan::ProgramOp program, mlir::SymbolTable &symbols);
  void crossTurns(plan::ProgramOp program, mlir::SymbolTable &symbols);
  /// Returns whether only one segment uses the buffer, and each of its runs writes the buffer before it reads it.
  bool staysInRun(mlir::Value buffer) const;
  /// Returns whether commands behind the position may run before it in another run of a segment.
  bool repeats(int64_t position) const;

  bool takesTurns = false; // the timeline returns to an earlier segment
  llvm::MapVector<mlir::Value, Interval> alive;
  llvm::DenseSet<mlir::Value> crossing;
  llvm::SmallVector<Interval> repeated;                       // positions of segments that run several times
  llvm::DenseMap<mlir::Value, int64_t> lastUse;               // position of each buffer's last use
  llvm::DenseMap<mlir::Value, mlir::Operation *> onlySegment; // null for a buffer that several segments use
  llvm::DenseSet<mlir::Value> readFirst, leavesRun;
  llvm::DenseSet<mlir::Value> besides; // another stream may still use it when its last use begins
  llvm::SmallVector<mlir::Operation *> ordered;
};

} // namespace bowline

#endif // BOWLINE_PASSES_ANALYSIS_LIFETIMES_H
