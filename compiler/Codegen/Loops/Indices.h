//===- Indices.h - Indices and conditions, in one lane or in all
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_CODEGEN_LOOPS_INDICES_H
#define BOWLINE_COMPILER_CODEGEN_LOOPS_INDICES_H

#include "compiler/Codegen/Loops/Scopes.h"

namespace bowline::codegen {

/// The lanes of the present vector: the dimension along which values are vectors.
struct Lanes {
  DimSet dim = 0;
  int64_t count = 0;
  /// One i1 per lane: whether the lane exists. Null if all lanes exist.
  Value mask;
};

/// Emits the values of affine expressions over the dimensions that have values in the present scopes.
class Indices {
public:
  Indices(KernelBuilder &b, Scopes &scopes) : b(b), scopes(scopes) {}

  /// The lanes of the vector being computed. Code that begins vectors sets them, and resets them at the end.
  Lanes lanes;

  bool isVarying(const Expr *expr) const { return expr->freeDims & lanes.dim; }

  /// Returns `count` lanes along `dim`, of which the first `present` exist.
  Lanes firstLanes(unsigned dim, int64_t count, int64_t present);

  /// Sets `lanes` for the last `rest` elements along `dim`.
  void setTailLanes(unsigned dim, int64_t rest);

  /// Broadcasts a scalar to all lanes. Returns vectors, and all values outside vectors, unchanged.
  Value toLanes(Value scalar);

  /// Returns the value of `expr` in the first lane as an i64.
  Value scalarIndex(AffineExpr expr);

  /// Returns the values of `expr` in all lanes as integers of `type`, which must be wide enough.
  Value vectorIndex(AffineExpr expr, Type type);

  /// Returns whether all bounds of `box` hold, as one condition per lane (`count` lanes), or as a single condition if
  /// `count` is 0. Returns null for a box without bounds.
  Value holds(const graph::IndexBox &box, int64_t count);

private:
  Value emitBinary(AffineExprKind kind, Value lhs, Value rhs);

  KernelBuilder &b;
  Scopes &scopes;
};

} // namespace bowline::codegen

#endif // BOWLINE_COMPILER_CODEGEN_LOOPS_INDICES_H
