//===- LocalParts.cpp - Indices of a rank's part
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/Ops/LocalParts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace bowline::graph;

Value bowline::graph::shiftedToPart(LocalContext &context, ImplicitLocOpBuilder &builder, Value indices,
                                    LocalContext::Axes axes, int64_t part) {
  Value place = context.placeAlong(builder, axes);
  Value first =
      arith::MulIOp::create(builder, place, constantLike(builder, place.getType(), static_cast<double>(part)));
  Value firsts = BroadcastOp::create(builder, indices.getType(), first, ArrayRef<int64_t>{});
  return arith::SubIOp::create(builder, indices, firsts);
}

Value bowline::graph::atMost(ImplicitLocOpBuilder &builder, Value index, int64_t last) {
  Value bound = constantLike(builder, index.getType(), static_cast<double>(last));
  Value isBehind = arith::CmpIOp::create(builder, arith::CmpIPredicate::sgt, index, bound);
  return arith::SelectOp::create(builder, isBehind, bound, index);
}

Value bowline::graph::withinZeroAnd(ImplicitLocOpBuilder &builder, Value index, int64_t last) {
  Value zero = constantLike(builder, index.getType(), 0);
  Value isBefore = arith::CmpIOp::create(builder, arith::CmpIPredicate::slt, index, zero);
  return arith::SelectOp::create(builder, isBefore, zero, atMost(builder, index, last));
}

Value bowline::graph::whereOwn(ImplicitLocOpBuilder &builder, Value index, int64_t part, Value value, Value other) {
  Type type = index.getType();
  Value above = arith::CmpIOp::create(builder, arith::CmpIPredicate::sge, index, constantLike(builder, type, 0));
  Value below = arith::CmpIOp::create(builder, arith::CmpIPredicate::slt, index,
                                      constantLike(builder, type, static_cast<double>(part)));
  Value inner = arith::SelectOp::create(builder, below, value, other);
  return arith::SelectOp::create(builder, above, inner, other);
}
