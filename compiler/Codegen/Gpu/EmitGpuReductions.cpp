//===- Gpu/EmitGpuReductions.cpp - Sums and maxima by several threads
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/Gpu/GpuKernelEmitter.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::codegen;

SmallVector<Value> GpuKernelEmitter::reduceInLanes(ArrayRef<const Expr *> group, ArrayRef<const Expr *> bodies) {
  ArrayRef<unsigned> dims = group[0]->dims;
  int64_t count = 1;
  for (unsigned dim : dims)
    count *= nest->space.size(dim);
  insertHere();
  SmallVector<Value> sums = emitCounted(termLane, constant(count), constant(termLanes), identities(group, lanes.count),
                                        [&](Value item, ValueRange accumulators) {
                                          setDims(dims, item);
                                          return accumulate(group, bodies, accumulators);
                                        });
  insertHere();
  for (auto [reduction, sum] : llvm::zip_equal(group, sums)) {
    Value combined = sum;
    for (int64_t i = 0; i < lanes.count; ++i) {
      Value element = vector::ExtractOp::create(b, sum, i);
      for (int64_t distance = kWarp / 2; distance >= kWarp / termLanes; distance /= 2)
        element = combine(reduction, element, shuffle(element, distance));
      combined = vector::InsertOp::create(b, element, combined, i);
    }
    sum = combined;
  }
  return sums;
}

void GpuKernelEmitter::setDims(ArrayRef<unsigned> dims, Value item) {
  Value rest = item;
  for (size_t i = dims.size(); i-- > 0;) {
    Value at = rest;
    if (i > 0) {
      at = arith::RemUIOp::create(b, rest, constant(nest->space.size(dims[i])));
      rest = arith::DivUIOp::create(b, rest, constant(nest->space.size(dims[i])));
    }
    scopes.back().dims[dims[i]] = at;
  }
}

SmallVector<Value> GpuKernelEmitter::reduce(ArrayRef<const Expr *> group, ArrayRef<const Expr *> bodies) {
  bool ofBlock = scopes.size() <= blockScopes;
  bool isShared = ofBlock || scopes.size() <= rowScopes;
  Lanes around = lanes;
  if (!isShared) {
    if (termLanes > 1 && scopes.size() == termScope && isVarying(group[0]))
      return reduceInLanes(group, bodies);
    if (!isVarying(group[0]))
      lanes = {};
    SmallVector<Value> results = reduceAcross(group, bodies);
    lanes = around;
    return results;
  }
  ArrayRef<unsigned> dims = group[0]->dims;
  unsigned along = dims.back();
  int64_t size = nest->space.size(along), vector = vectorOf(bodies, {}, along, size), rows = 1;
  for (unsigned dim : dims.drop_back())
    rows *= nest->space.size(dim);
  auto emit = [&](int64_t from, int64_t to, int64_t count, ValueRange initial) {
    insertHere();
    int64_t steps = (to - from) / count;
    return emitCounted(ofBlock ? threadNumber : lane, constant(rows * steps), constant(ofBlock ? blockThreads : kWarp),
                       initial, [&](Value item, ValueRange accumulators) {
                         Value at = item;
                         if (rows > 1) {
                           at = arith::RemUIOp::create(b, item, constant(steps));
                           setDims(dims.drop_back(), arith::DivUIOp::create(b, item, constant(steps)));
                         }
                         at = arith::MulIOp::create(b, at, constant(count));
                         scopes.back().dims[along] = arith::AddIOp::create(b, at, constant(from));
                         for (unsigned dim : dims.drop_back())
                           if (rows == 1)
                             scopes.back().dims[dim] = constant(0);
                         return accumulate(group, bodies, accumulators);
                       });
  };
  int64_t whole = size - size % vector;
  insertHere();
  lanes = vector > 1 ? Lanes{dimBit(along), vector, nullptr} : Lanes{};
  SmallVector<Value> sums = emit(0, whole, vector, identities(group, lanes.count));
  insertHere();
  if (vector > 1)
    for (auto [reduction, sum] : llvm::zip_equal(group, sums))
      sum = combineLanes(reduction, sum);
  lanes = {};
  if (whole < size)
    sums = emit(whole, size, 1, sums);
  lanes = around;
  insertHere();
  return combineThreads(group, std::move(sums), ofBlock);
}

Value GpuKernelEmitter::shuffle(Value value, int64_t distance) {
  Type type = value.getType(), i32Type = b.getI32Type();
  auto exchange = [&](Value word) {
    return intrinsic("llvm.nvvm.shfl.sync.bfly.i32", i32Type, {i32(-1), word, i32(distance), i32(kWarp - 1)});
  };
  unsigned width = type.getIntOrFloatBitWidth();
  Value bits = isa<FloatType>(type) ? arith::BitcastOp::create(b, b.getIntegerType(width), value).getResult() : value;
  Value result;
  if (width == 32) {
    result = exchange(bits);
  } else if (width == 64) {
    Value shift = constant(32);
    Value high = toI64(exchange(arith::TruncIOp::create(b, i32Type, arith::ShRUIOp::create(b, bits, shift))));
    Value low = toI64(exchange(arith::TruncIOp::create(b, i32Type, bits)));
    result = arith::OrIOp::create(b, arith::ShLIOp::create(b, high, shift), low);
  } else {
    result = arith::TruncIOp::create(b, bits.getType(), exchange(arith::ExtUIOp::create(b, i32Type, bits)));
  }
  return isa<FloatType>(type) ? arith::BitcastOp::create(b, type, result).getResult() : result;
}

Value GpuKernelEmitter::combineLanesOfWarp(const Expr *reduction, Value value) {
  for (int64_t distance = kWarp / 2; distance > 0; distance /= 2)
    value = combine(reduction, value, shuffle(value, distance));
  return value;
}

void GpuKernelEmitter::barrier() {
  insertHere();
  intrinsic("llvm.nvvm.barrier.cta.sync.aligned.all", Type(), {i32(0)});
}

void GpuKernelEmitter::emitRowBarrier() {
  if (rowOfBlock)
    return barrier();
  insertHere();
  intrinsic("llvm.nvvm.bar.warp.sync", Type(), {i32(-1)});
}

Value GpuKernelEmitter::sharedAddress(int64_t slot, Value warpNumber) {
  auto pointer = LLVM::LLVMPointerType::get(b.getContext(), 3);
  Value base = LLVM::AddressOfOp::create(b, pointer, sharedName);
  Value index = arith::AddIOp::create(b, warpNumber, constant(slot * kWarp));
  return LLVM::GEPOp::create(b, pointer, b.getI64Type(), base, ArrayRef<LLVM::GEPArg>{index});
}

SmallVector<Value> GpuKernelEmitter::combineThreads(ArrayRef<const Expr *> group, SmallVector<Value> values,
                                                    bool ofBlock) {
  for (auto [reduction, value] : llvm::zip_equal(group, values))
    value = combineLanesOfWarp(reduction, value);
  int64_t warps = blockThreads / kWarp;
  if (!ofBlock || warps == 1)
    return values;
  sharedSlots = std::max<int64_t>(sharedSlots, group.size());
  // What was there before has been read.
  barrier();
  // Every lane of a warp has the same value.
  for (auto [slot, value] : llvm::enumerate(values))
    LLVM::StoreOp::create(b, value, sharedAddress(slot, warp));
  barrier();
  Value isWarp = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, lane, constant(warps));
  Value place = arith::SelectOp::create(b, isWarp, lane, constant(0));
  for (auto [slot, reduction] : llvm::enumerate(group)) {
    Value other = LLVM::LoadOp::create(b, values[slot].getType(), sharedAddress(slot, place));
    other = arith::SelectOp::create(b, isWarp, other, identity(reduction, 0));
    values[slot] = combineLanesOfWarp(reduction, other);
  }
  return values;
}
