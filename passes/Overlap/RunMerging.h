//===- RunMerging.h - The last run of a segment and the segment behind it become one
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_OVERLAP_RUNMERGING_H
#define BOWLINE_PASSES_OVERLAP_RUNMERGING_H

#include "dialects/Plan/PlanOps.h"
#include "mlir/IR/SymbolTable.h"

namespace bowline {

/// Merges a segment that runs once and reduces results of the previous segment with the last run of that segment, so
/// that both can be scheduled together. Otherwise the reductions could begin only after that run. If the previous
/// segment runs once, the merged commands are in that segment; else they are in a copy of it for its last run, with
/// copies of its temporary buffers. Programs with events, and programs whose timeline returns to earlier segments, do
/// not change.
class RunMerging {
public:
  RunMerging(plan::ProgramOp program, mlir::SymbolTable &symbols) : program(program), symbols(symbols) {}

  /// Returns the number of segments that were merged with their previous segment.
  int64_t run();

private:
  bool isInOrder();
  int64_t runsOf(int64_t segment);
  bool isWorthIt(plan::SegmentOp earlier, plan::SegmentOp later);
  void merge(int64_t earlier);

  plan::ProgramOp program;
  mlir::SymbolTable &symbols;
};

} // namespace bowline

#endif // BOWLINE_PASSES_OVERLAP_RUNMERGING_H
