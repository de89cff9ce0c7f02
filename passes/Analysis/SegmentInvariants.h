//===- SegmentInvariants.h - What stays the same while a segment repeats
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

/// How often a segment runs, and which buffers have the same content in all its runs.
class SegmentInvariants {
public:
  SegmentInvariants(plan::SegmentOp segment, mlir::SymbolTable &symbols);

  /// Runs without another segment in between; 0 where its runs are not all together.
  int64_t runs() const { return runCount; }

  /// Whether no command of the segment writes `buffer` and every run sees the same slot of it.
  bool isInvariant(mlir::Value buffer) const;

  /// The segment no longer holds the one command that wrote `buffer`.
  void forgetWrites(mlir::Value buffer) { writes.erase(buffer); }

  /// How many commands of the segment write `buffer`.
  unsigned writesOf(mlir::Value buffer) const { return writes.lookup(buffer); }

private:
  llvm::DenseMap<mlir::Value, unsigned> writes;
  int64_t runCount = 0;
};

/// The segment that runs once, right before the first run of `segment`: that in front of it, or a new one.
plan::SegmentOp segmentBefore(plan::SegmentOp segment);

} // namespace bowline

#endif // BOWLINE_PASSES_ANALYSIS_SEGMENTINVARIANTS_H
