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

/// Merges a segment that runs once and reduces the results of the segment in front of it with that one. Otherwise its
/// commands can only begin when the last run of the other segment is over. The commands of both are in one segment
/// then, so that they can be scheduled together: the segment in front itself if it runs once, else a copy of it for its
/// last run, whose temporary buffers are copies too. Programs whose segments take turns, or that have events, stay as
/// they are.
class RunMerging {
public:
  RunMerging(plan::ProgramOp program, mlir::SymbolTable &symbols) : program(program), symbols(symbols) {}

  /// Returns how many segments were merged with the one in front of them.
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
