//===- Reductions.cpp - Reductions as loops with accumulators
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/Loops/Reductions.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include <map>

using namespace mlir;
using namespace bowline::codegen;

namespace {

/// A sum over one dimension of terms that are zero except where the dimension's index plus `shift` is `label`. Its
/// value is `term` there, or zero where no index is.
struct OneTerm {
  const Expr *term, *label;
  /// The comparison with `label` adds this number to the dimension's index first.
  int64_t shift;
};

std::optional<OneTerm> findOneTerm(const IndexSpace &space, const Expr *reduce) {
  if (!reduce->isSum || reduce->dims.size() != 1)
    return std::nullopt;
  unsigned dim = reduce->dims[0];
  const Expr *body = reduce->operands[0];
  if (body->kind != Expr::Kind::Compute || !isa<arith::SelectOp>(body->op))
    return std::nullopt;
  const Expr *condition = body->operands[0], *otherwise = body->operands[2];
  auto compare = condition->kind == Expr::Kind::Compute ? dyn_cast<arith::CmpIOp>(condition->op) : arith::CmpIOp();
  auto zero = otherwise->kind == Expr::Kind::Constant ? dyn_cast<FloatAttr>(otherwise->constant) : FloatAttr();
  if (!compare || compare.getPredicate() != arith::CmpIPredicate::eq || !zero || !zero.getValue().isPosZero())
    return std::nullopt;
  const Expr *index = condition->operands[0], *label = condition->operands[1];
  if (index->kind != Expr::Kind::Index)
    std::swap(index, label);
  if (index->kind != Expr::Kind::Index || label->freeDims & dimBit(dim))
    return std::nullopt;
  auto shift = dyn_cast<AffineConstantExpr>(space.add(index->index, space.scale(space.dim(dim), -1)));
  return shift ? std::optional(OneTerm{body->operands[1], label, shift.getValue()}) : std::nullopt;
}

} // namespace

void Reductions::prepare(ArrayRef<const Expr *> roots) {
  std::map<std::tuple<unsigned, bool, SmallVector<unsigned>>, SmallVector<const Expr *>> groups;
  forEachExpr(roots, [&](const Expr *expr) {
    if (expr->kind == Expr::Kind::Reduce && !values.isStored(expr) && scopes.isBound(expr->freeDims) &&
        scopes.scopeOf(expr->freeDims) == scopes.size() - 1 && !scopes.back().values.count(expr))
      groups[{expr->reduceDepth, indices.isVarying(expr), expr->dims}].push_back(expr);
  });
  for (auto &[key, group] : groups)
    emitReductions(group);
}

bool Reductions::emitOneTerm(const Expr *reduce) {
  auto found = indices.isVarying(reduce) ? std::nullopt : findOneTerm(frame.nest->space, reduce);
  if (!found || indices.isVarying(found->label))
    return false;
  Value label = values.value(found->label);
  scopes.insertHere();
  if (label.getType() != b.getI64Type())
    label = arith::ExtSIOp::create(b, b.getI64Type(), label);
  Value at = arith::SubIOp::create(b, label, b.constant(found->shift));
  // One unsigned comparison checks both bounds: a negative number is larger than any size.
  Value isIndex =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ult, at, b.constant(frame.nest->space.size(reduce->dims[0])));
  at = arith::SelectOp::create(b, isIndex, at, b.constant(0));
  Lanes around = std::exchange(indices.lanes, {});
  Value term;
  scopes.emitOnce(reduce->dims[0], at, [&] { term = values.value(found->term); });
  indices.lanes = around;
  Value zero = b.splat(b.getZeroAttr(reduce->type), 0);
  scopes.back().values[reduce] = arith::SelectOp::create(b, isIndex, term, zero);
  return true;
}

void Reductions::emitReductions(ArrayRef<const Expr *> all) {
  SmallVector<const Expr *> group, bodies;
  for (const Expr *reduce : all)
    if (!emitOneTerm(reduce))
      group.push_back(reduce);
  if (group.empty())
    return;
  for (const Expr *reduce : group)
    bodies.push_back(reduce->operands[0]);
  SmallVector<Value> results = reduce(group, bodies);
  for (auto [reduction, result] : llvm::zip_equal(group, results))
    scopes.back().values[reduction] = result;
}

SmallVector<Value> Reductions::identities(ArrayRef<const Expr *> group, int64_t count) {
  return llvm::to_vector(llvm::map_range(group, [&](const Expr *reduce) { return identity(reduce, count); }));
}

Value Reductions::identity(const Expr *reduce, int64_t count) {
  TypedAttr attr = b.getZeroAttr(reduce->type);
  if (!reduce->isSum) {
    if (auto type = dyn_cast<FloatType>(reduce->type))
      attr = FloatAttr::get(type, APFloat::getInf(type.getFloatSemantics(), /*Negative=*/true));
    else
      attr = IntegerAttr::get(reduce->type, APInt::getSignedMinValue(reduce->type.getIntOrFloatBitWidth()));
  }
  return b.splat(attr, count);
}

Value Reductions::combine(const Expr *reduce, Value lhs, Value rhs) {
  bool isFloat = isa<FloatType>(reduce->type);
  if (reduce->isSum)
    return isFloat ? arith::AddFOp::create(b, lhs, rhs, arith::FastMathFlags::contract).getResult()
                   : arith::AddIOp::create(b, lhs, rhs).getResult();
  if (reduce->ignoresNan && isFloat) {
    // This is one instruction, which returns its second operand where an operand is NaN.
    Value isGreater = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, rhs, lhs);
    return arith::SelectOp::create(b, isGreater, rhs, lhs);
  }
  return isFloat ? arith::MaximumFOp::create(b, lhs, rhs).getResult() : arith::MaxSIOp::create(b, lhs, rhs).getResult();
}

Value Reductions::combineLanes(const Expr *reduce, Value vector) {
  bool isFloat = isa<FloatType>(reduce->type);
  if (!reduce->isSum && isFloat && reduce->ignoresNan) {
    // Halves are combined, because vector.reduction would combine elements that may be NaN one by one.
    int64_t count = cast<VectorType>(vector.getType()).getNumElements();
    while (count > 1) {
      count /= 2;
      auto half = [&](int64_t first) { return b.elements(vector, first, count); };
      vector = combine(reduce, half(0), half(count));
    }
    return vector::ExtractOp::create(b, vector, 0);
  }
  vector::CombiningKind kind = reduce->isSum ? vector::CombiningKind::ADD
                               : isFloat     ? vector::CombiningKind::MAXIMUMF
                                             : vector::CombiningKind::MAXSI;
  return vector::ReductionOp::create(b, kind, vector,
                                     reduce->isSum ? arith::FastMathFlags::reassoc : arith::FastMathFlags::none);
}

SmallVector<Value> Reductions::accumulate(ArrayRef<const Expr *> group, ArrayRef<const Expr *> bodies,
                                          ValueRange accumulators) {
  prepare(bodies);
  SmallVector<Value> results;
  for (auto [reduce, body, accumulator] : llvm::zip_equal(group, bodies, accumulators)) {
    Value element = values.value(body);
    scopes.insertHere();
    element = indices.toLanes(element);
    if (indices.lanes.mask)
      element = arith::SelectOp::create(b, indices.lanes.mask, element, identity(reduce, indices.lanes.count));
    results.push_back(combine(reduce, accumulator, element));
  }
  return results;
}

SmallVector<Value> Reductions::emitLoops(ArrayRef<unsigned> dims, SmallVector<Value> accumulators,
                                         Scopes::LoopBody body) {
  if (dims.empty())
    return body(accumulators);
  scopes.insertHere();
  return scopes.emitLoop(dims[0], b.constant(0), b.constant(frame.nest->space.size(dims[0])), 1, accumulators,
                         [&](ValueRange inner) { return emitLoops(dims.drop_front(), llvm::to_vector(inner), body); });
}

SmallVector<Value> Reductions::reduceAcross(ArrayRef<const Expr *> group, ArrayRef<const Expr *> bodies) {
  scopes.insertHere();
  return emitLoops(group[0]->dims, identities(group, indices.lanes.count),
                   [&](ValueRange accumulators) { return accumulate(group, bodies, accumulators); });
}
