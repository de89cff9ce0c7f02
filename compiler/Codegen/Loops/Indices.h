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

/// The dimension along which values are vectors.
struct Lanes {
  DimSet dim = 0;
  int64_t count = 0;
  /// One i1 per lane that says whether the lane exists; null where all do.
  Value mask;
};

/// Emits the values of affine expressions of the dimensions at the current place of the code.
class Indices {
public:
  Indices(KernelBuilder &b, Scopes &scopes) : b(b), scopes(scopes) {}

  /// The lanes of the vector that is computed now. Code that begins vectors sets them, and resets them at the end.
  Lanes lanes;

  bool isVarying(const Expr *expr) const { return expr->freeDims & lanes.dim; }

  /// Lanes along `dim`: `count` of them, of which the first `present` exist.
  Lanes firstLanes(unsigned dim, int64_t count, int64_t present);

  /// Sets `lanes` for the last `rest` elements along `dim`.
  void setTailLanes(unsigned dim, int64_t rest);

  /// Broadcasts `scalar` to all lanes, where there are lanes and it is no vector yet.
  Value toLanes(Value scalar);

  /// The value of `expr` in the first lane, an i64.
  Value scalarIndex(AffineExpr expr);

  /// The values of `expr` in all lanes, as integers of `type`, which is wide enough.
  Value vectorIndex(AffineExpr expr, Type type);

  /// Whether all bounds of `box` hold: `count` conditions, one per lane, or a single one where `count` is 0. Null for a
  /// box without bounds.
  Value holds(const graph::IndexBox &box, int64_t count);

private:
  Value emitBinary(AffineExprKind kind, Value lhs, Value rhs);

  KernelBuilder &b;
  Scopes &scopes;
};

} // namespace bowline::codegen

#endif // BOWLINE_COMPILER_CODEGEN_LOOPS_INDICES_H
