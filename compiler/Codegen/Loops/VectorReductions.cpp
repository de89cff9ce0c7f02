//===- VectorReductions.cpp - Reductions on a processor with vectors
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/Loops/VectorReductions.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace bowline::codegen;

SmallVector<Value> VectorReductions::reduce(ArrayRef<const Expr *> group, ArrayRef<const Expr *> bodies) {
  if (indices.isVarying(group[0]))
    return reduceAcross(group, bodies);
  return reducesRowByRow(group) ? reduceRows(group, bodies) : reduceAlong(group, bodies);
}

SmallVector<Value> VectorReductions::reduceRows(ArrayRef<const Expr *> group, ArrayRef<const Expr *> bodies) {
  // A sum of block sums is more exact than one running sum.
  constexpr int64_t kRowsPerBlock = 64;
  Lanes around = indices.lanes;
  indices.lanes = {};
  ArrayRef<unsigned> dims = group[0]->dims;
  unsigned row = dims.back();
  scopes.insertHere();
  SmallVector<Value> results = emitLoops(dims.drop_back(), identities(group, 0), [&](ValueRange current) {
    scopes.insertHere();
    Value rows = b.constant(frame.nest->space.size(row));
    return scopes.emitLoop(row, b.constant(0), rows, kRowsPerBlock, current, [&](ValueRange total) {
      scopes.insertHere();
      Value from = scopes.dimValue(row);
      Value to = arith::MinSIOp::create(b, arith::AddIOp::create(b, from, b.constant(kRowsPerBlock)), rows);
      SmallVector<Value> block = scopes.emitLoop(row, from, to, 1, identities(group, 0), [&](ValueRange accumulators) {
        return accumulate(group, bodies, accumulators);
      });
      for (auto [reduce, sum, before] : llvm::zip_equal(group, block, total))
        sum = combine(reduce, before, sum);
      return block;
    });
  });
  indices.lanes = around;
  return results;
}

SmallVector<Value> VectorReductions::reduceAlong(ArrayRef<const Expr *> group, ArrayRef<const Expr *> bodies) {
  Lanes around = indices.lanes;
  ArrayRef<unsigned> dims = group[0]->dims;
  unsigned along = dims.back();
  int64_t size = frame.nest->space.size(along),
          count = std::max<int64_t>(chooseLanes(bodies, size, frame.vectorLanes, true), 2);
  int64_t rest = size % count, whole = size - rest;
  // A row on which functions such as exp are computed takes long enough for the next row to be prefetched meanwhile.
  // The first pass over that one computes less and would wait for memory.
  bool isExpensive = false;
  forEachExpr(bodies, [&](const Expr *expr) {
    isExpensive |= expr->kind == Expr::Kind::Compute && isa<math::MathDialect>(expr->op->getDialect());
  });
  scopes.insertHere();
  indices.setTailLanes(along, std::max<int64_t>(rest, 1));
  Lanes tail = indices.lanes;
  size_t results = group.size();
  SmallVector<Value> accumulators;
  if (whole)
    llvm::append_range(accumulators, identities(group, count));
  if (rest)
    llvm::append_range(accumulators, identities(group, tail.count));

  accumulators = emitLoops(dims.drop_back(), accumulators, [&](ValueRange current) {
    SmallVector<Value> next;
    if (whole) {
      scopes.insertHere();
      indices.lanes = {dimBit(along), count, nullptr};
      next = scopes.emitLoop(along, b.constant(0), b.constant(whole), count, current.take_front(results),
                             [&](ValueRange inner) {
                               if (isExpensive)
                                 prefetches.prefetchAhead(bodies, along, size);
                               return accumulate(group, bodies, inner);
                             });
    }
    if (rest) {
      scopes.insertHere();
      indices.lanes = tail;
      scopes.emitOnce(along, b.constant(whole),
                      [&] { llvm::append_range(next, accumulate(group, bodies, current.take_back(results))); });
    }
    return next;
  });
  indices.lanes = around;
  scopes.insertHere();
  SmallVector<Value> combined;
  for (auto [i, reduce] : llvm::enumerate(group)) {
    Value result = combineLanes(reduce, accumulators[i]);
    if (whole && rest)
      result = combine(reduce, result, combineLanes(reduce, accumulators[i + results]));
    combined.push_back(result);
  }
  return combined;
}
