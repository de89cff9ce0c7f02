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
  /// Which lanes exist; null where all do.
  Value mask;
};

/// Numbers that follow from where code is: values of affine expressions of the dimensions.
class Indices {
public:
  Indices(KernelBuilder &b, Scopes &scopes) : b(b), scopes(scopes) {}

  /// The lanes of what is computed now. Who begins vectors sets them, and sets them back.
  Lanes lanes;

  bool isVarying(const Expr *expr) const { return expr->freeDims & lanes.dim; }

  /// `count` lanes of which the first `present` exist.
  Lanes firstLanes(unsigned dim, int64_t count, int64_t present);

  void setTailLanes(unsigned dim, int64_t rest);

  /// The same in all lanes, where there are lanes.
  Value toLanes(Value scalar);

  /// The index in the first lane.
  Value scalarIndex(AffineExpr expr);

  /// The indices in all lanes, as integers of `type`, which holds them.
  Value vectorIndex(AffineExpr expr, Type type);

  /// Whether all bounds hold: a condition per lane, or one for all of them.
  Value holds(const graph::IndexBox &box, int64_t count);

private:
  Value emitBinary(AffineExprKind kind, Value lhs, Value rhs);

  KernelBuilder &b;
  Scopes &scopes;
};

} // namespace bowline::codegen

#endif // BOWLINE_COMPILER_CODEGEN_LOOPS_INDICES_H
