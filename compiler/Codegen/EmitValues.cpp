//===- EmitValues.cpp - Elements as scalars or vectors
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/KernelEmitter.h"
#include "compiler/Codegen/MathExpansion.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/bit.h"

using namespace mlir;
using namespace bowline::codegen;

Value KernelEmitter::splat(TypedAttr element, int64_t count) {
  if (count == 0)
    return arith::ConstantOp::create(b, element);
  auto type = VectorType::get({count}, element.getType());
  return arith::ConstantOp::create(b, DenseElementsAttr::get(type, Attribute(element)));
}

Value KernelEmitter::toLanes(Value scalar) {
  if (lanes.count == 0 || isa<VectorType>(scalar.getType()))
    return scalar;
  return vector::BroadcastOp::create(b, VectorType::get({lanes.count}, scalar.getType()), scalar);
}

Value KernelEmitter::value(const Expr *expr) {
  size_t scope = scopeOf(expr->freeDims);
  if (auto it = scopes[scope].values.find(expr); it != scopes[scope].values.end())
    return it->second;
  Value result;
  inScope(scope, [&] {
    if (nest->kept && expr == nest->kept->inSegment) {
      insertHere();
      result = loadKept();
      scopes.back().values[expr] = result;
      return;
    }
    if (columns.count(expr)) {
      insertHere();
      result = loadColumns(expr);
      scopes.back().values[expr] = result;
      return;
    }
    if (expr->kind == Expr::Kind::Reduce) {
      emitReductions(expr);
      result = scopes.back().values[expr];
      return;
    }
    SmallVector<Value> operands;
    for (const Expr *operand : expr->operands)
      operands.push_back(value(operand));
    insertHere();
    result = compute(expr, operands);
    if (nest->kept && expr == nest->kept->inReduction)
      storeKept(result);
    scopes.back().values[expr] = result;
  });
  return result;
}

Value KernelEmitter::compute(const Expr *expr, SmallVectorImpl<Value> &operands) {
  int64_t count = isVarying(expr) ? lanes.count : 0;
  if (count)
    for (Value &operand : operands)
      operand = toLanes(operand);
  switch (expr->kind) {
  case Expr::Kind::Constant:
    return splat(cast<TypedAttr>(expr->constant), 0);
  case Expr::Kind::Index: {
    // Linear indices fit where their results do; divisions may need more on the way.
    bool isNarrow =
        count && expr->type.isInteger(32) && IndexSpace::coefficient(expr->index, llvm::countr_zero(lanes.dim));
    Value number = count ? vectorIndex(expr->index, isNarrow ? expr->type : b.getI64Type()) : scalarIndex(expr->index);
    Type type = laneType(expr->type, count);
    return number.getType() == type ? number : arith::TruncIOp::create(b, type, number);
  }
  case Expr::Kind::Load:
    return load(expr);
  case Expr::Kind::Choose: {
    Value result = splat(b.getZeroAttr(expr->type), count);
    for (auto [box, operand] : llvm::zip_equal(expr->boxes, operands))
      result = arith::SelectOp::create(b, holds(box, count), operand, result);
    return result;
  }
  case Expr::Kind::Compute:
    return apply(expr, operands, count);
  case Expr::Kind::Reduce:
    break;
  }
  llvm_unreachable("reductions are computed in groups");
}

Value KernelEmitter::apply(const Expr *expr, ArrayRef<Value> operands, int64_t count) {
  if (isa<math::MathDialect>(expr->op->getDialect())) {
    Value result = expandMath(b, cpu, expr->op, operands);
    if (result)
      return result;
    if (!unsupported)
      expr->op->emitOpError("has no code generation");
    unsupported = true;
    return splat(b.getZeroAttr(expr->type), count);
  }
  IRMapping mapping;
  mapping.map(expr->op->getOperands(), operands);
  Operation *copy = b.clone(*expr->op, mapping);
  copy->getResult(0).setType(laneType(expr->type, count));
  // Fused multiply-add is more exact, and the same wherever the element is computed.
  if (auto fastMath = dyn_cast<arith::ArithFastMathInterface>(copy))
    copy->setAttr(fastMath.getFastMathAttrName(),
                  arith::FastMathFlagsAttr::get(b.getContext(), arith::FastMathFlags::contract));
  return copy->getResult(0);
}

Value KernelEmitter::holds(const Expr::Box &box, int64_t count) {
  Value result;
  for (const Expr::Bound &bound : box) {
    bool varying = IndexSpace::dimsOf(bound.index) & lanes.dim;
    Value index = varying ? vectorIndex(bound.index, b.getI64Type()) : scalarIndex(bound.index);
    auto compare = [&](arith::CmpIPredicate predicate, int64_t edge) {
      Value condition =
          arith::CmpIOp::create(b, predicate, index, splat(b.getI64IntegerAttr(edge), varying ? count : 0));
      if (count && !varying)
        condition = toLanes(condition);
      result = result ? arith::AndIOp::create(b, result, condition) : condition;
    };
    compare(arith::CmpIPredicate::sge, bound.low);
    compare(arith::CmpIPredicate::slt, bound.high);
  }
  return result;
}

Value KernelEmitter::dimValue(unsigned dim) const {
  for (const Scope &scope : llvm::reverse(scopes))
    if (auto it = scope.dims.find(dim); it != scope.dims.end())
      return it->second;
  llvm_unreachable("every dimension of an index has a loop");
}

Value KernelEmitter::emitBinary(AffineExprKind kind, Value lhs, Value rhs) {
  switch (kind) {
  case AffineExprKind::Add:
    return arith::AddIOp::create(b, lhs, rhs);
  case AffineExprKind::Mul:
    return arith::MulIOp::create(b, lhs, rhs);
  // Negative only outside of a box, where the value is not used.
  case AffineExprKind::FloorDiv:
    return arith::DivSIOp::create(b, lhs, rhs);
  case AffineExprKind::Mod:
    return arith::RemSIOp::create(b, lhs, rhs);
  default:
    llvm_unreachable("not an affine operation that index expressions have");
  }
}

Value KernelEmitter::scalarIndex(AffineExpr expr) {
  if (auto number = dyn_cast<AffineConstantExpr>(expr))
    return constant(number.getValue());
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return dimValue(dim.getPosition());
  auto binary = cast<AffineBinaryOpExpr>(expr);
  Value lhs = scalarIndex(binary.getLHS()), rhs = scalarIndex(binary.getRHS());
  return emitBinary(expr.getKind(), lhs, rhs);
}

Value KernelEmitter::vectorIndex(AffineExpr expr, Type type) {
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