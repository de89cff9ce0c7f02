//===- RankContext.cpp - Answers to operations about the rank that computes a part of them
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Local/Tensors/RankContext.h"

using namespace mlir;
using namespace bowline;

static ArrayAttr toAttr(OpBuilder &builder, ArrayRef<StringAttr> axes) {
  return builder.getArrayAttr(SmallVector<Attribute>(axes.begin(), axes.end()));
}

Value RankContext::placeAlong(ImplicitLocOpBuilder &builder, Axes axes) {
  auto scalar = RankedTensorType::get({}, builder.getI32Type());
  return dist::CoordinateOp::create(builder, scalar, toAttr(builder, axes));
}

Value RankContext::combine(ImplicitLocOpBuilder &builder, graph::ReduceKind kind, Value value, Axes axes,
                           const Twine &why) {
  auto own = kind == graph::ReduceKind::Sum ? dist::ReduceKind::Sum : dist::ReduceKind::Max;
  return dist::AllReduceOp::create(builder, value.getType(), own, value, toAttr(builder, axes),
                                   ("global-to-local: " + why).str());
}

void RankContext::replace(Value result, Value other, const SmallPtrSetImpl<Operation *> &except) {
  result.replaceUsesWithIf(other, [&](OpOperand &use) { return !except.contains(use.getOwner()); });
  replaced(result, other);
}
