//===- SegmentInvariants.h - Buffers that stay the same while a segment repeats
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_ANALYSIS_SEGMENTINVARIANTS_H
#define BOWLINE_PASSES_ANALYSIS_SEGMENTINVARIANTS_H

#include "dialects/Plan/PlanOps.h"
#include "llvm/ADT/DenseMap.h"

namespace bowline {

/// The number of runs of a segment, and the buffers that have the same content in all its runs.
class SegmentInvariants {
public:
  SegmentInvariants(plan::SegmentOp segment, mlir::SymbolTable &symbols);

  /// The number of runs of the segment; 0 if another segment runs between two of them.
  int64_t runs() const { return runCount; }

  /// Returns whether no command of the segment writes `buffer` and every run sees the same slot of it.
  bool isInvariant(mlir::Value buffer) const;

  /// Notes that the segment no longer has the one command that wrote `buffer`.
  void forgetWrites(mlir::Value buffer) { writes.erase(buffer); }

  /// The number of commands of the segment that write `buffer`.
  unsigned writesOf(mlir::Value buffer) const { return writes.lookup(buffer); }

private:
  llvm::DenseMap<mlir::Value, unsigned> writes;
  int64_t runCount = 0;
};

/// The segment that runs once, directly before the first run of `segment`. Creates one if the program has none.
plan::SegmentOp segmentBefore(plan::SegmentOp segment);

} // namespace bowline

#endif // BOWLINE_PASSES_ANALYSIS_SEGMENTINVARIANTS_H
