//===- Reductions.h - Reductions as loops with accumulators
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_CODEGEN_LOOPS_REDUCTIONS_H
#define BOWLINE_COMPILER_CODEGEN_LOOPS_REDUCTIONS_H

#include "compiler/Codegen/Loops/Values.h"

namespace bowline::codegen {

/// Emits the reductions of a nest. Subclasses implement `reduce`, which chooses loops and threads.
class Reductions : public ReductionEmitter {
public:
  Reductions(KernelFrame &frame, Scopes &scopes, Indices &indices, Values &values)
      : frame(frame), b(frame.b), scopes(scopes), indices(indices), values(values) {}

  void prepare(ArrayRef<const Expr *> roots) override;
  void emitReductions(ArrayRef<const Expr *> group) override;

  /// Returns the initial accumulators of `group`: vectors of `count` elements, or scalars if `count` is 0.
  SmallVector<Value> identities(ArrayRef<const Expr *> group, int64_t count);
  Value identity(const Expr *reduce, int64_t count);

  Value combine(const Expr *reduce, Value lhs, Value rhs);

  /// Combines the accumulators with the present values of the bodies, and returns the new accumulators.
  SmallVector<Value> accumulate(ArrayRef<const Expr *> group, ArrayRef<const Expr *> bodies, ValueRange accumulators);

  /// Emits nested loops over `dims` around `body`, and returns the final accumulators.
  SmallVector<Value> emitLoops(ArrayRef<unsigned> dims, SmallVector<Value> accumulators, Scopes::LoopBody body);

protected:
  /// Returns the values of `group`: reductions over the same dimensions, in the innermost scope.
  virtual SmallVector<Value> reduce(ArrayRef<const Expr *> group, ArrayRef<const Expr *> bodies) = 0;

  /// Combines the lanes of `vector` into one value.
  Value combineLanes(const Expr *reduce, Value vector);

  /// Reduces in plain loops; values are scalars, or vectors along a dimension that is not reduced.
  SmallVector<Value> reduceAcross(ArrayRef<const Expr *> group, ArrayRef<const Expr *> bodies);

  KernelFrame &frame;
  KernelBuilder &b;
  Scopes &scopes;
  Indices &indices;
  Values &values;

private:
  /// Computes `reduce` if it is a sum in which only one term, at a known index, can be nonzero. Otherwise returns false
  /// and emits nothing.
  bool emitOneTerm(const Expr *reduce);
};

} // namespace bowline::codegen

#endif // BOWLINE_COMPILER_CODEGEN_LOOPS_REDUCTIONS_H
