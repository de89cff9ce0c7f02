//===- Values.cpp - Expressions as scalars or vectors
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/Loops/Values.h"
#include "compiler/Codegen/MathExpansion.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/bit.h"

using namespace mlir;
using namespace bowline::codegen;

StackValues *Values::findBuffer(const Expr *expr) const {
  for (StackValues *buffer : buffers)
    if (buffer->has(expr))
      return buffer;
  return nullptr;
}

Value Values::value(const Expr *expr) {
  size_t scope = scopes.scopeOf(expr->freeDims);
  if (auto it = scopes[scope].values.find(expr); it != scopes[scope].values.end())
    return it->second;
  Value result;
  scopes.inScope(scope, [&] {
    if (StackValues *buffer = findBuffer(expr)) {
      scopes.insertHere();
      result = buffer->load(expr);
      scopes.back().values[expr] = result;
      return;
    }
    if (expr->kind == Expr::Kind::Reduce) {
      reductions->emitReductions(expr);
      result = scopes.back().values[expr];
      return;
    }
    SmallVector<Value> operands;
    for (const Expr *operand : expr->operands)
      operands.push_back(value(operand));
    scopes.insertHere();
    result = compute(expr, operands);
    for (StackValues *buffer : buffers)
      buffer->keep(expr, result);
    scopes.back().values[expr] = result;
  });
  return result;
}

Value Values::compute(const Expr *expr, SmallVectorImpl<Value> &operands) {
  int64_t count = indices.isVarying(expr) ? indices.lanes.count : 0;
  if (count)
    for (Value &operand : operands)
      operand = indices.toLanes(operand);
  switch (expr->kind) {
  case Expr::Kind::Constant:
    return b.splat(cast<TypedAttr>(expr->constant), 0);
  case Expr::Kind::Index: {
    // If the index is linear in the lanes' dimension, i32 is enough where the result fits. Operands of divisions may be
    // larger than the result.
    bool isNarrow =
        count && expr->type.isInteger(32) && IndexSpace::coefficient(expr->index, llvm::countr_zero(indices.lanes.dim));
    Value number = count ? indices.vectorIndex(expr->index, isNarrow ? expr->type : b.getI64Type())
                         : indices.scalarIndex(expr->index);
    Type type = laneType(expr->type, count);
    return number.getType() == type ? number : arith::TruncIOp::create(b, type, number);
  }
  case Expr::Kind::Load:
    return load(expr);
  case Expr::Kind::Choose: {
    Value result = b.splat(b.getZeroAttr(expr->type), count);
    for (auto [box, operand] : llvm::zip_equal(expr->boxes, operands))
      result = arith::SelectOp::create(b, indices.holds(box, count), operand, result);
    return result;
  }
  case Expr::Kind::Compute:
    return apply(expr, operands, count);
  case Expr::Kind::Reduce:
    break;
  }
  llvm_unreachable("reductions are computed in groups");
}

Value Values::apply(const Expr *expr, ArrayRef<Value> operands, int64_t count) {
  if (isa<math::MathDialect>(expr->op->getDialect())) {
    Value result = expandMath(b, frame.cpu, expr->op, operands);
    if (result)
      return result;
    if (!frame.unsupported)
      expr->op->emitOpError("has no code generation");
    frame.unsupported = true;
    return b.splat(b.getZeroAttr(expr->type), count);
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

Value Values::load(const Expr *expr) {
  const Argument &argument = frame.arguments[expr->argument];
  Type element = memoryType(argument.type.getElementType());
  unsigned alignment = element.getIntOrFloatBitWidth() / 8;
  if (argument.stride) {
    Value row = arith::MulIOp::create(b, scopes.dimValue(frame.nest->outer[0]), argument.stride);
    Value index = arith::AddIOp::create(b, row, scopes.dimValue(*frame.nest->segments[0].dim));
    return memory.loadVector(argument, memory.address(argument, element, index), indices.lanes.mask);
  }
  // Under a condition an index may be outside of the tensor; the program then does not use the loaded element.
  int64_t last = argument.type.getNumElements() - 1;
  auto [low, high] = frame.nest->space.range(expr->index);
  bool mayBeOutside = low < 0 || high > last;
  if (!indices.isVarying(expr)) {
    Value index = indices.scalarIndex(expr->index);
    if (mayBeOutside)
      index = memory.clamp(index, 0, last);
    return memory.fromMemory(LLVM::LoadOp::create(b, element, memory.address(argument, element, index), alignment),
                             argument.type.getElementType());
  }
  auto type = VectorType::get({indices.lanes.count}, element);
  if (IndexSpace::coefficient(expr->index, llvm::countr_zero(indices.lanes.dim)) == 1) {
    Value mask = indices.lanes.mask;
    if (mayBeOutside) {
      Value places = indices.vectorIndex(expr->index, b.getI64Type());
      auto within = [&](arith::CmpIPredicate predicate, int64_t edge) {
        Value holds =
            arith::CmpIOp::create(b, predicate, places, b.splat(b.getI64IntegerAttr(edge), indices.lanes.count));
        mask = mask ? arith::AndIOp::create(b, mask, holds) : holds;
      };
      if (low < 0)
        within(arith::CmpIPredicate::sge, 0);
      if (high > last)
        within(arith::CmpIPredicate::sle, last);
    }
    return memory.loadVector(argument, memory.address(argument, element, indices.scalarIndex(expr->index)), mask,
                             memory.alignmentOf(argument, expr->index));
  }
  Value index = indices.vectorIndex(expr->index, b.getI64Type());
  if (mayBeOutside)
    index = memory.clamp(index, 0, last);
  Value all = indices.lanes.mask ? indices.lanes.mask : b.splat(b.getBoolAttr(true), indices.lanes.count);
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
  return memory.fromMemory(
      LLVM::masked_gather::create(b, type, memory.address(argument, element, index), all, zero, alignment),
      argument.type.getElementType());
}

void Values::store(const Nest::Store &target, Value computed) {
  scopes.insertHere();
  const Argument &argument = frame.output(target.output);
  Value pointer =
      memory.address(argument, memoryType(argument.type.getElementType()), indices.scalarIndex(target.index));
  computed = indices.toLanes(computed);
  unsigned alignment = indices.lanes.count ? memory.alignmentOf(argument, target.index) : 0;
  if (target.isPartialSum)
    computed = arith::AddFOp::create(b, memory.loadVector(argument, pointer, indices.lanes.mask, alignment), computed,
                                     arith::FastMathFlags::contract);
  memory.storeVector(argument, pointer, computed, target.isStreamed, alignment);
}

void Values::emitStores(ArrayRef<Nest::Store> stores) {
  reductions->prepare(valuesOf(stores));
  SmallVector<Value> computed;
  for (const Nest::Store &current : stores)
    computed.push_back(value(current.value));
  for (auto [current, result] : llvm::zip_equal(stores, computed))
    store(current, result);
}
