//===- EmitReductions.cpp - Reductions as loops with accumulators
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/KernelEmitter.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <map>

using namespace mlir;
using namespace bowline::codegen;

void KernelEmitter::prepare(ArrayRef<const Expr *> roots) {
  std::map<std::tuple<unsigned, bool, SmallVector<unsigned>>, SmallVector<const Expr *>> groups;
  forEachExpr(roots, [&](const Expr *expr) {
    if (expr->kind == Expr::Kind::Reduce && !columns.count(expr) && isBound(expr->freeDims) &&
        scopeOf(expr->freeDims) == scopes.size() - 1 && !scopes.back().values.count(expr))
      groups[{expr->reduceDepth, isVarying(expr), expr->dims}].push_back(expr);
  });
  for (auto &[key, group] : groups)
    emitReductions(group);
}

namespace {

/// A sum over one dimension of what is zero but where the dimension's index is `label`: the term there, or zero where
/// `label` is no index.
struct OneTerm {
  const Expr *term, *label;
  /// The dimension's index less the label that it is compared with.
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

bool KernelEmitter::emitOneTerm(const Expr *reduce) {
  auto found = isVarying(reduce) ? std::nullopt : findOneTerm(nest->space, reduce);
  if (!found || isVarying(found->label))
    return false;
  Value label = value(found->label);
  insertHere();
  if (label.getType() != b.getI64Type())
    label = arith::ExtSIOp::create(b, b.getI64Type(), label);
  Value at = arith::SubIOp::create(b, label, constant(found->shift));
  // As unsigned numbers negative ones are large.
  Value isIndex = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, at, constant(nest->space.size(reduce->dims[0])));
  at = arith::SelectOp::create(b, isIndex, at, constant(0));
  Lanes around = std::exchange(lanes, {});
  Value term;
  emitOnce(reduce->dims[0], at, [&] { term = value(found->term); });
  lanes = around;
  Value zero = splat(b.getZeroAttr(reduce->type), 0);
  scopes.back().values[reduce] = arith::SelectOp::create(b, isIndex, term, zero);
  return true;
}

void KernelEmitter::emitReductions(ArrayRef<const Expr *> all) {
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

SmallVector<Value> KernelEmitter::reduce(ArrayRef<const Expr *> group, ArrayRef<const Expr *> bodies) {
  if (isVarying(group[0]))
    return reduceAcross(group, bodies);
  return reducesRowByRow(group) ? reduceRows(group, bodies) : reduceAlong(group, bodies);
}

SmallVector<Value> KernelEmitter::identities(ArrayRef<const Expr *> group, int64_t count) {
  return llvm::to_vector(llvm::map_range(group, [&](const Expr *reduce) { return identity(reduce, count); }));
}

Value KernelEmitter::identity(const Expr *reduce, int64_t count) {
  TypedAttr attr = b.getZeroAttr(reduce->type);
  if (!reduce->isSum) {
    if (auto type = dyn_cast<FloatType>(reduce->type))
      attr = FloatAttr::get(type, APFloat::getInf(type.getFloatSemantics(), /*Negative=*/true));
    else
      attr = IntegerAttr::get(reduce->type, APInt::getSignedMinValue(reduce->type.getIntOrFloatBitWidth()));
  }
  return splat(attr, count);
}

Value KernelEmitter::combine(const Expr *reduce, Value lhs, Value rhs) {
  bool isFloat = isa<FloatType>(reduce->type);
  if (reduce->isSum)
    return isFloat ? arith::AddFOp::create(b, lhs, rhs, arith::FastMathFlags::contract).getResult()
                   : arith::AddIOp::create(b, lhs, rhs).getResult();
  if (reduce->ignoresNan && isFloat) {
    // One instruction, which gives its second operand where one is NaN.
    Value isGreater = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, rhs, lhs);
    return arith::SelectOp::create(b, isGreater, rhs, lhs);
  }
  return isFloat ? arith::MaximumFOp::create(b, lhs, rhs).getResult() : arith::MaxSIOp::create(b, lhs, rhs).getResult();
}

Value KernelEmitter::combineLanes(const Expr *reduce, Value vector) {
  bool isFloat = isa<FloatType>(reduce->type);
  if (!reduce->isSum && isFloat && reduce->ignoresNan) {
    // Halves, because a reduction orders elements that may be NaN one by one.
    int64_t count = cast<VectorType>(vector.getType()).getNumElements();
    while (count > 1) {
      count /= 2;
      auto half = [&](int64_t first) { return elements(vector, first, count); };
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

SmallVector<Value> KernelEmitter::accumulate(ArrayRef<const Expr *> group, ArrayRef<const Expr *> bodies,
                                             ValueRange accumulators) {
  prepare(bodies);
  SmallVector<Value> results;
  for (auto [reduce, body, accumulator] : llvm::zip_equal(group, bodies, accumulators)) {
    Value element = value(body);
    insertHere();
    element = toLanes(element);
    if (lanes.mask)
      element = arith::SelectOp::create(b, lanes.mask, element, identity(reduce, lanes.count));
    results.push_back(combine(reduce, accumulator, element));
  }
  return results;
}

SmallVector<Value> KernelEmitter::emitLoops(ArrayRef<unsigned> dims, SmallVector<Value> accumulators, LoopBody body) {
  if (dims.empty())
    return body(accumulators);
  insertHere();
  return emitLoop(dims[0], constant(0), constant(nest->space.size(dims[0])), 1, accumulators,
                  [&](ValueRange inner) { return emitLoops(dims.drop_front(), llvm::to_vector(inner), body); });
}

SmallVector<Value> KernelEmitter::reduceAcross(ArrayRef<const Expr *> group, ArrayRef<const Expr *> bodies) {
  insertHere();
  return emitLoops(group[0]->dims, identities(group, lanes.count),
                   [&](ValueRange accumulators) { return accumulate(group, bodies, accumulators); });
}

SmallVector<Value> KernelEmitter::reduceRows(ArrayRef<const Expr *> group, ArrayRef<const Expr *> bodies) {
  // A sum of block sums is more exact than one running sum.
  constexpr int64_t kRowsPerBlock = 64;
  Lanes around = lanes;
  lanes = {};
  ArrayRef<unsigned> dims = group[0]->dims;
  unsigned row = dims.back();
  insertHere();
  SmallVector<Value> results = emitLoops(dims.drop_back(), identities(group, 0), [&](ValueRange current) {
    insertHere();
    Value rows = constant(nest->space.size(row));
    return emitLoop(row, constant(0), rows, kRowsPerBlock, current, [&](ValueRange total) {
      insertHere();
      Value from = dimValue(row);
      Value to = arith::MinSIOp::create(b, arith::AddIOp::create(b, from, constant(kRowsPerBlock)), rows);
      SmallVector<Value> block = emitLoop(row, from, to, 1, identities(group, 0), [&](ValueRange accumulators) {
        return accumulate(group, bodies, accumulators);
      });
      for (auto [reduce, sum, before] : llvm::zip_equal(group, block, total))
        sum = combine(reduce, before, sum);
      return block;
    });
  });
  lanes = around;
  return results;
}

SmallVector<Value> KernelEmitter::reduceAlong(ArrayRef<const Expr *> group, ArrayRef<const Expr *> bodies) {
  Lanes around = lanes;
  ArrayRef<unsigned> dims = group[0]->dims;
  unsigned along = dims.back();
  int64_t size = nest->space.size(along), count = std::max<int64_t>(chooseLanes(bodies, size, vectorLanes, true), 2);
  int64_t rest = size % count, whole = size - rest;
  // Functions of a row take long enough to bring the next one meanwhile, which is gone through first for less.
  bool isExpensive = false;
  forEachExpr(bodies, [&](const Expr *expr) {
    isExpensive |= expr->kind == Expr::Kind::Compute && isa<math::MathDialect>(expr->op->getDialect());
  });
  insertHere();
  setTailLanes(along, std::max<int64_t>(rest, 1));
  Lanes tail = lanes;
  size_t results = group.size();
  SmallVector<Value> accumulators;
  if (whole)
    llvm::append_range(accumulators, identities(group, count));
  if (rest)
    llvm::append_range(accumulators, identities(group, tail.count));

  accumulators = emitLoops(dims.drop_back(), accumulators, [&](ValueRange current) {
    SmallVector<Value> next;
    if (whole) {
      insertHere();
      lanes = {dimBit(along), count, nullptr};
      next = emitLoop(along, constant(0), constant(whole), count, current.take_front(results), [&](ValueRange inner) {
        if (isExpensive)
          prefetchAhead(bodies, along, size);
        return accumulate(group, bodies, inner);
      });
    }
    if (rest) {
      insertHere();
      lanes = tail;
      emitOnce(along, constant(whole),
               [&] { llvm::append_range(next, accumulate(group, bodies, current.take_back(results))); });
    }
    return next;
  });
  lanes = around;
  insertHere();
  SmallVector<Value> combined;
  for (auto [i, reduce] : llvm::enumerate(group)) {
    Value result = combineLanes(reduce, accumulators[i]);
    if (whole && rest)
      result = combine(reduce, result, combineLanes(reduce, accumulators[i + results]));
    combined.push_back(result);
  }
  return combined;
}