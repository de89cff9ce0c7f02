//===- Traffic.cpp - Bytes that operations read and write
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Fusion/Groups/Traffic.h"
#include "dialects/Graph/GraphOps.h"
#include "passes/Fusion/Groups/FusionGroups.h"

using namespace mlir;
using namespace bowline;

int64_t bowline::bytesOfTensor(Value value) {
  RankedTensorType type = graph::tensorType(value);
  return type.getNumElements() * llvm::divideCeil(type.getElementTypeBitWidth(), 8);
}

/// The bytes that a reader of `value` loads: those that a repeated operation reads, and none for a constant.
static int64_t bytesRead(Value value) {
  Operation *producer = value.getDefiningOp();
  if (!producer || !FusionGroups::isRepeated(producer))
    return bytesOfTensor(value);
  int64_t bytes = 0;
  for (Value operand : producer->getOperands())
    bytes += bytesRead(operand);
  return bytes;
}

int64_t bowline::trafficOf(Operation *op) {
  if (op->hasTrait<OpTrait::IsTerminator>() || op->hasTrait<OpTrait::ConstantLike>() || FusionGroups::isRepeated(op) ||
      graph::isView(op) || isa<graph::ReadOp, graph::WriteOp>(op))
    return 0;
  int64_t bytes = 0;
  for (Value operand : op->getOperands())
    bytes += bytesRead(operand);
  for (Value result : op->getResults())
    bytes += bytesOfTensor(result);
  return bytes;
}

int64_t bowline::trafficOf(Block &block) {
  int64_t bytes = 0;
  for (Operation &op : block)
    bytes += trafficOf(&op);
  return bytes;
}
