//===- Movement.cpp - Operations that move elements, and compute nothing
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/Movement.h"
#include "dialects/Graph/GraphOps.h"

using namespace mlir;
using namespace bowline::graph;

Value bowline::graph::movedBy(Operation *op, bool inOrder) {
  bool isOrdered = isa<ReshapeOp, SliceOp>(op);
  bool isMoved = isOrdered || (!inOrder && isa<TransposeOp, BroadcastOp>(op));
  return isMoved ? op->getOperand(0) : Value();
}

bool bowline::graph::areKeptBelow(Value index, int64_t end, function_ref<Value(Operation *)> movedByOther) {
  while (Operation *op = index.getDefiningOp()) {
    index = movedBy(op);
    if (!index && movedByOther)
      index = movedByOther(op);
    if (!index)
      return false;
  }
  auto argument = cast<BlockArgument>(index);
  auto function = dyn_cast<FuncOp>(argument.getOwner()->getParentOp());
  auto limit = function ? function.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), FuncOp::kLimitAttr) : nullptr;
  return limit && limit.getInt() > 0 && limit.getInt() <= end;
}
