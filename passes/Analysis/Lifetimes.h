//===- Lifetimes.h - When each buffer of a program is alive
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_ANALYSIS_LIFETIMES_H
#define BOWLINE_PASSES_ANALYSIS_LIFETIMES_H

#include "dialects/Plan/PlanOps.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

namespace bowline {

/// Positions of commands, counted over the segments of a program, each segment once.
struct Interval {
  int64_t first = 0;
  int64_t last = 0; // inclusive

  bool overlaps(const Interval &other) const { return first <= other.last && other.first <= last; }
};

/// How a command uses its operands.
struct CommandUse {
  mlir::Value buffer;
  bool reads;
  bool writes;
};

/// The buffers that a launch or a copy uses, in operand order. `symbols` finds kernels.
llvm::SmallVector<CommandUse> usesOf(mlir::Operation *command, mlir::SymbolTable &symbols);

/// The lifetimes of a program's temporary and scratch buffers. A buffer that is used in a segment that runs several
/// times, and lives longer than one run of it, is alive during all of that segment. Where the timeline does not run the
/// segments one after the other, every buffer is alive all the time.
///
/// With several streams a buffer is alive until all commands issued later begin after its uses, whatever their streams;
/// events have to be in the program before.
class Lifetimes {
public:
  Lifetimes(plan::ProgramOp program, mlir::SymbolTable &symbols);

  /// The lifetime of each buffer, in the order of first use.
  const llvm::MapVector<mlir::Value, Interval> &intervals() const { return alive; }

  /// Whether the value of a temporary buffer goes from one run of a segment to the next, or into it or out of it, so
  /// that the buffer keeps its memory during all runs of that segment.
  bool crossesRuns(mlir::Value buffer) const { return crossing.contains(buffer); }

  /// Whether the command at `position` is the last one that uses `buffer`, after all other uses are over, so that it
  /// may write its results there.
  bool diesAt(mlir::Value buffer, int64_t position) const {
    return lastUse.lookup(buffer) == position && !besides.contains(buffer) &&
           !(crossesRuns(buffer) && repeats(position));
  }

  /// All commands of the program, by position.
  llvm::ArrayRef<mlir::Operation *> commands() const { return ordered; }

private:
  void collect(plan::ProgramOp program, mlir::SymbolTable &symbols);
  void reachOverStreams(plan::ProgramOp program, mlir::SymbolTable &symbols);
  void crossRuns(plan::ProgramOp program);
  /// Whether one segment alone uses the buffer, and each of its runs has a value of its own in it.
  bool staysInRun(mlir::Value buffer) const;
  /// Whether commands behind the position may run before it in another run of a segment.
  bool repeats(int64_t position) const;

  bool takesTurns = false; // the timeline returns to a segment after others
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
