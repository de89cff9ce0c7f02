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

/// Computes the reductions of a nest. In which loops, and by whom, a target says with `reduce`.
class Reductions {
public:
  Reductions(KernelFrame &frame, Scopes &scopes, Indices &indices, Values &values)
      : frame(frame), b(frame.b), scopes(scopes), indices(indices), values(values) {}
  virtual ~Reductions() = default;

  /// Computes the reductions under `roots` that belong in the innermost scope, those over the same dimensions in one
  /// loop unless one needs the other.
  void prepare(ArrayRef<const Expr *> roots);

  /// Computes `group`, over the same dimensions, in the innermost scope.
  void emitReductions(ArrayRef<const Expr *> group);

  /// The values before anything is combined, `count` of each.
  SmallVector<Value> identities(ArrayRef<const Expr *> group, int64_t count);
  Value identity(const Expr *reduce, int64_t count);

  Value combine(const Expr *reduce, Value lhs, Value rhs);

  /// Combines the bodies' values into the accumulators.
  SmallVector<Value> accumulate(ArrayRef<const Expr *> group, ArrayRef<const Expr *> bodies, ValueRange accumulators);

  /// Loops over `dims`, and `body` inside of them.
  SmallVector<Value> emitLoops(ArrayRef<unsigned> dims, SmallVector<Value> accumulators, Scopes::LoopBody body);

protected:
  /// The values of `group`, reductions over the same dimensions that belong in the innermost scope.
  virtual SmallVector<Value> reduce(ArrayRef<const Expr *> group, ArrayRef<const Expr *> bodies) = 0;

  Value combineLanes(const Expr *reduce, Value vector);

  /// Values are vectors along another dimension.
  SmallVector<Value> reduceAcross(ArrayRef<const Expr *> group, ArrayRef<const Expr *> bodies);

  KernelFrame &frame;
  KernelBuilder &b;
  Scopes &scopes;
  Indices &indices;
  Values &values;

private:
  /// Computes a sum of which one term at most is not zero, and known where it is. False if `reduce` is none.
  bool emitOneTerm(const Expr *reduce);
};

} // namespace bowline::codegen

#endif // BOWLINE_COMPILER_CODEGEN_LOOPS_REDUCTIONS_H
