//===- VectorReductions.h - Reductions on a processor with vectors
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_CODEGEN_LOOPS_VECTORREDUCTIONS_H
#define BOWLINE_COMPILER_CODEGEN_LOOPS_VECTORREDUCTIONS_H

#include "compiler/Codegen/Loops/Prefetches.h"
#include "compiler/Codegen/Loops/Reductions.h"

namespace bowline::codegen {

/// Reductions by one thread. Either a vector of accumulators runs along another dimension or along the reduced one, or
/// the thread reduces row by row.
class VectorReductions : public Reductions {
public:
  VectorReductions(KernelFrame &frame, Scopes &scopes, Indices &indices, Values &values, Prefetches &prefetches)
      : Reductions(frame, scopes, indices, values), prefetches(prefetches) {}

protected:
  SmallVector<Value> reduce(ArrayRef<const Expr *> group, ArrayRef<const Expr *> bodies) override;

private:
  /// Reduces row by row: for bodies with reductions that are contiguous along a row (see reducesRowByRow).
  SmallVector<Value> reduceRows(ArrayRef<const Expr *> group, ArrayRef<const Expr *> bodies);

  /// Reduces with vectors along the last reduced dimension.
  SmallVector<Value> reduceAlong(ArrayRef<const Expr *> group, ArrayRef<const Expr *> bodies);

  Prefetches &prefetches;
};

} // namespace bowline::codegen

#endif // BOWLINE_COMPILER_CODEGEN_LOOPS_VECTORREDUCTIONS_H
