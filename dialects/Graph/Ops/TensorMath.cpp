//===- TensorMath.cpp - Formulas over tensors
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/Ops/TensorMath.h"

using namespace mlir;
using namespace bowline::graph;

Value TensorMath::marked(Value value, StringRef promise) {
  value.getDefiningOp()->setAttr(promise, b.getUnitAttr());
  return value;
}

Value TensorMath::logistic(Value x) {
  // exp of a negative number only: 1 / (1 + e) and, for negative x, e / (1 + e).
  Value power = marked(create<math::ExpOp>(create<arith::NegFOp>(create<math::AbsFOp>(x))), kNeverAboveZero);
  Value isNegative = compare(arith::CmpFPredicate::OLT, x, constant(x, 0));
  Value numerator = select(isNegative, power, constant(x, 1));
  return div(numerator, add(constant(x, 1), power));
}

Value TensorMath::finiteBelow(Value x) {
  auto type = cast<FloatType>(tensorType(x).getElementType());
  APFloat largest = APFloat::getLargest(type.getFloatSemantics(), /*Negative=*/true);
  Value bound = create<arith::ConstantOp>(DenseElementsAttr::get(tensorType(x), largest));
  return create<arith::MaximumFOp>(x, bound);
}

Value TensorMath::broadcast(Value value, Value like, ArrayRef<int64_t> dims) {
  return create<BroadcastOp>(tensorType(like).clone(tensorType(value).getElementType()), value, dims);
}

Value TensorMath::acrossRow(Value value, Value like) {
  return broadcast(value, like, llvm::to_vector(llvm::seq<int64_t>(0, tensorType(like).getRank() - 1)));
}

Value TensorMath::acrossRows(Value value, Value like) {
  return broadcast(value, like, {tensorType(like).getRank() - 1});
}

Value TensorMath::reduce(ReduceKind kind, Value value) {
  return create<ReduceOp>(kind, value, ArrayRef<int64_t>{tensorType(value).getRank() - 1});
}

Value TensorMath::mean(Value value) {
  Value sum = reduce(ReduceKind::Sum, value);
  return mul(sum, constant(sum, 1.0 / tensorType(value).getShape().back()));
}

Value TensorMath::inverseRoot(Value square, double eps) {
  return create<math::RsqrtOp>(add(square, constant(square, eps)));
}

Value TensorMath::wide(Value value) {
  if (tensorType(value).getElementTypeBitWidth() >= 32)
    return value;
  return create<arith::ExtFOp>(tensorType(value).clone(b.getF32Type()), value);
}

Value TensorMath::narrow(Value value, Type type) {
  return value.getType() == type ? value : create<arith::TruncFOp>(type, value);
}
