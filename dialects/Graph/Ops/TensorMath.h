//===- TensorMath.h - Formulas over tensors
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_DIALECTS_GRAPH_OPS_TENSORMATH_H
#define BOWLINE_DIALECTS_GRAPH_OPS_TENSORMATH_H

#include "dialects/Graph/Ops/OpSupport.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace bowline::graph {

/// Builds the operations that layers decompose into: elementwise operations, reductions of rows, and repetitions along
/// and across rows. A row is the last dimension.
class TensorMath {
public:
  TensorMath(mlir::OpBuilder &builder, mlir::Operation *op) : b(op->getLoc(), builder) {}

  template <typename OpTy, typename... Args> Value create(Args &&...args) {
    return OpTy::create(b, std::forward<Args>(args)...)->getResult(0);
  }
  /// Returns `value` after setting `promise`, an attribute of FusionRole.h, on its operation for the code generator.
  Value marked(Value value, llvm::StringRef promise);

  Value constant(Value like, double value) { return constantLike(b, like.getType(), value); }
  Value add(Value lhs, Value rhs) { return create<mlir::arith::AddFOp>(lhs, rhs); }
  Value sub(Value lhs, Value rhs) { return create<mlir::arith::SubFOp>(lhs, rhs); }
  Value mul(Value lhs, Value rhs) { return create<mlir::arith::MulFOp>(lhs, rhs); }
  Value div(Value lhs, Value rhs) { return create<mlir::arith::DivFOp>(lhs, rhs); }
  Value select(Value condition, Value lhs, Value rhs) { return create<mlir::arith::SelectOp>(condition, lhs, rhs); }
  Value compare(mlir::arith::CmpFPredicate predicate, Value lhs, Value rhs) {
    return create<mlir::arith::CmpFOp>(predicate, lhs, rhs);
  }
  /// 1 / (1 + exp(-x)), without overflow for any x.
  Value logistic(Value x);
  /// Replaces minus infinity in `x` by the lowest finite number, so that the product with zero is zero.
  Value finiteBelow(Value x);

  Value broadcast(Value value, Value like, llvm::ArrayRef<int64_t> dims);
  /// One value per row, repeated along the rows of `like`.
  Value acrossRow(Value value, Value like);
  /// One row, repeated along all dimensions of `like` but the last.
  Value acrossRows(Value value, Value like);

  Value reduce(ReduceKind kind, Value value);
  Value mean(Value value);
  Value inverseRoot(Value square, double eps);

  /// Extends `value` to f32 if its element type is narrower.
  Value wide(Value value);
  Value narrow(Value value, mlir::Type type);

private:
  mlir::ImplicitLocOpBuilder b;
};

} // namespace bowline::graph

#endif // BOWLINE_DIALECTS_GRAPH_OPS_TENSORMATH_H
