//===- Gpu/ThreadReductions.cpp - Sums and maxima by several threads
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/Gpu/ThreadReductions.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::codegen;

void ThreadReductions::withTermLanes(int64_t lanes, Value lane, llvm::function_ref<void()> body) {
  termLanes = lanes;
  termLane = lane;
  termScope = scopes.size();
  body();
  termLanes = 1;
}

SmallVector<Value> ThreadReductions::reduceInLanes(ArrayRef<const Expr *> group, ArrayRef<const Expr *> bodies) {
  ArrayRef<unsigned> dims = group[0]->dims;
  int64_t count = 1;
  for (unsigned dim : dims)
    count *= frame.nest->space.size(dim);
  scopes.insertHere();
  SmallVector<Value> sums =
      scopes.emitCounted(termLane, b.constant(count), b.constant(termLanes), identities(group, indices.lanes.count),
                         [&](Value item, ValueRange accumulators) {
                           setDims(dims, item);
                           return accumulate(group, bodies, accumulators);
                         });
  scopes.insertHere();
  for (auto [reduction, sum] : llvm::zip_equal(group, sums)) {
    Value combined = sum;
    for (int64_t i = 0; i < indices.lanes.count; ++i) {
      Value element = vector::ExtractOp::create(b, sum, i);
      for (int64_t distance = kWarp / 2; distance >= kWarp / termLanes; distance /= 2)
        element = combine(reduction, element, threads.shuffle(element, distance));
      combined = vector::InsertOp::create(b, element, combined, i);
    }
    sum = combined;
  }
  return sums;
}

void ThreadReductions::setDims(ArrayRef<unsigned> dims, Value item) {
  Value rest = item;
  for (size_t i = dims.size(); i-- > 0;) {
    Value at = rest;
    if (i > 0) {
      at = arith::RemUIOp::create(b, rest, b.constant(frame.nest->space.size(dims[i])));
      rest = arith::DivUIOp::create(b, rest, b.constant(frame.nest->space.size(dims[i])));
    }
    scopes.back().dims[dims[i]] = at;
  }
}

SmallVector<Value> ThreadReductions::reduce(ArrayRef<const Expr *> group, ArrayRef<const Expr *> bodies) {
  bool ofBlock = scopes.size() <= blockScopes;
  bool isShared = ofBlock || scopes.size() <= rowScopes;
  Lanes around = indices.lanes;
  if (!isShared) {
    if (termLanes > 1 && scopes.size() == termScope && indices.isVarying(group[0]))
      return reduceInLanes(group, bodies);
    if (!indices.isVarying(group[0]))
      indices.lanes = {};
    SmallVector<Value> results = reduceAcross(group, bodies);
    indices.lanes = around;
    return results;
  }
  ArrayRef<unsigned> dims = group[0]->dims;
  unsigned along = dims.back();
  int64_t size = frame.nest->space.size(along), vector = vectorOf(frame.kernel, bodies, {}, along, size), rows = 1;
  for (unsigned dim : dims.drop_back())
    rows *= frame.nest->space.size(dim);
  auto emit = [&](int64_t from, int64_t to, int64_t count, ValueRange initial) {
    scopes.insertHere();
    int64_t steps = (to - from) / count;
    return scopes.emitCounted(ofBlock ? threads.number : threads.lane, b.constant(rows * steps),
                              b.constant(ofBlock ? threads.count : kWarp), initial,
                              [&](Value item, ValueRange accumulators) {
                                Value at = item;
                                if (rows > 1) {
                                  at = arith::RemUIOp::create(b, item, b.constant(steps));
                                  setDims(dims.drop_back(), arith::DivUIOp::create(b, item, b.constant(steps)));
                                }
                                at = arith::MulIOp::create(b, at, b.constant(count));
                                scopes.back().dims[along] = arith::AddIOp::create(b, at, b.constant(from));
                                for (unsigned dim : dims.drop_back())
                                  if (rows == 1)
                                    scopes.back().dims[dim] = b.constant(0);
                                return accumulate(group, bodies, accumulators);
                              });
  };
  int64_t whole = size - size % vector;
  scopes.insertHere();
  indices.lanes = vector > 1 ? Lanes{dimBit(along), vector, nullptr} : Lanes{};
  SmallVector<Value> sums = emit(0, whole, vector, identities(group, indices.lanes.count));
  scopes.insertHere();
  if (vector > 1)
    for (auto [reduction, sum] : llvm::zip_equal(group, sums))
      sum = combineLanes(reduction, sum);
  indices.lanes = {};
  if (whole < size)
    sums = emit(whole, size, 1, sums);
  indices.lanes = around;
  scopes.insertHere();
  return combineThreads(group, std::move(sums), ofBlock);
}

Value ThreadReductions::combineLanesOfWarp(const Expr *reduction, Value value) {
  for (int64_t distance = kWarp / 2; distance > 0; distance /= 2)
    value = combine(reduction, value, threads.shuffle(value, distance));
  return value;
}

SmallVector<Value> ThreadReductions::combineThreads(ArrayRef<const Expr *> group, SmallVector<Value> partial,
                                                    bool ofBlock) {
  for (auto [reduction, value] : llvm::zip_equal(group, partial))
    value = combineLanesOfWarp(reduction, value);
  int64_t warps = threads.count / kWarp;
  if (!ofBlock || warps == 1)
    return partial;
  // All threads have read the previous values of the slots.
  threads.barrier();
  // Every lane of a warp has the same value.
  for (auto [slot, value] : llvm::enumerate(partial))
    LLVM::StoreOp::create(b, value, threads.sharedAddress(slot, threads.warp));
  threads.barrier();
  Value isWarp = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, threads.lane, b.constant(warps));
  Value place = arith::SelectOp::create(b, isWarp, threads.lane, b.constant(0));
  for (auto [slot, reduction] : llvm::enumerate(group)) {
    Value other = LLVM::LoadOp::create(b, partial[slot].getType(), threads.sharedAddress(slot, place));
    other = arith::SelectOp::create(b, isWarp, other, identity(reduction, 0));
    partial[slot] = combineLanesOfWarp(reduction, other);
  }
  return partial;
}
