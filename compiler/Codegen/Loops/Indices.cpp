//===- Indices.cpp - Indices and conditions, in one lane or in all
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/Loops/Indices.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace bowline::codegen;

Lanes Indices::firstLanes(unsigned dim, int64_t count, int64_t present) {
  if (present == count)
    return {dimBit(dim), count, nullptr};
  SmallVector<bool> exists(count, false);
  std::fill_n(exists.begin(), present, true);
  Value mask = arith::ConstantOp::create(
      b, DenseElementsAttr::get(VectorType::get({count}, b.getI1Type()), ArrayRef<bool>(exists)));
  return {dimBit(dim), count, mask};
}

void Indices::setTailLanes(unsigned dim, int64_t rest) {
  // A single element is computed as a vector of two with one lane masked: vectors of one are compiled to slow code.
  lanes = firstLanes(dim, std::max<int64_t>(llvm::PowerOf2Ceil(rest), 2), rest);
}

Value Indices::toLanes(Value scalar) {
  if (lanes.count == 0 || isa<VectorType>(scalar.getType()))
    return scalar;
  return vector::BroadcastOp::create(b, VectorType::get({lanes.count}, scalar.getType()), scalar);
}

Value Indices::scalarIndex(AffineExpr expr) {
  if (auto number = dyn_cast<AffineConstantExpr>(expr))
    return b.constant(number.getValue());
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return scopes.dimValue(dim.getPosition());
  auto binary = cast<AffineBinaryOpExpr>(expr);
  Value lhs = scalarIndex(binary.getLHS()), rhs = scalarIndex(binary.getRHS());
  return emitBinary(expr.getKind(), lhs, rhs);
}

Value Indices::vectorIndex(AffineExpr expr, Type type) {
  auto scalar = [&](AffineExpr part) -> Value {
    Value index = scalarIndex(part);
    return toLanes(type == index.getType() ? index : arith::TruncIOp::create(b, type, index));
  };
  if (!(IndexSpace::dimsOf(expr) & lanes.dim))
    return scalar(expr);
  if (auto step = IndexSpace::coefficient(expr, llvm::countr_zero(lanes.dim))) {
    SmallVector<Attribute> steps;
    for (int64_t lane = 0; lane < lanes.count; ++lane)
      steps.push_back(b.getIntegerAttr(type, lane * *step));
    Value offsets = arith::ConstantOp::create(b, DenseElementsAttr::get(VectorType::get({lanes.count}, type), steps));
    return arith::AddIOp::create(b, scalar(expr), offsets);
  }
  auto binary = cast<AffineBinaryOpExpr>(expr);
  Value lhs = vectorIndex(binary.getLHS(), type), rhs = vectorIndex(binary.getRHS(), type);
  return emitBinary(expr.getKind(), lhs, rhs);
}

Value Indices::holds(const graph::IndexBox &box, int64_t count) {
  Value result;
  for (const graph::IndexBound &bound : box) {
    bool varying = IndexSpace::dimsOf(bound.index) & lanes.dim;
    Value index = varying ? vectorIndex(bound.index, b.getI64Type()) : scalarIndex(bound.index);
    auto compare = [&](arith::CmpIPredicate predicate, int64_t edge) {
      Value condition =
          arith::CmpIOp::create(b, predicate, index, b.splat(b.getI64IntegerAttr(edge), varying ? count : 0));
      if (count && !varying)
        condition = toLanes(condition);
      result = result ? arith::AndIOp::create(b, result, condition) : condition;
    };
    compare(arith::CmpIPredicate::sge, bound.low);
    compare(arith::CmpIPredicate::slt, bound.high);
  }
  return result;
}

Value Indices::emitBinary(AffineExprKind kind, Value lhs, Value rhs) {
  switch (kind) {
  case AffineExprKind::Add:
    return arith::AddIOp::create(b, lhs, rhs);
  case AffineExprKind::Mul:
    return arith::MulIOp::create(b, lhs, rhs);
  // The operand is negative only outside of a box, where the value is not used.
  case AffineExprKind::FloorDiv:
    return arith::DivSIOp::create(b, lhs, rhs);
  case AffineExprKind::Mod:
    return arith::RemSIOp::create(b, lhs, rhs);
  default:
    llvm_unreachable("not an affine operation that index expressions have");
  }
}
