//===- Fusion.cpp - fusion, yield
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/GraphOps.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace bowline::graph;

LogicalResult FusionOp::verify() {
  Block &body = getBody().front();
  if (body.getArgumentTypes() != getInputs().getTypes())
    return emitOpError("body arguments must have the types of the inputs");
  if (body.getTerminator()->getOperandTypes() != getOutputs().getTypes())
    return emitOpError("graph.yield must have the types of the results");
  return success();
}

Operation *FusionOp::getContraction() {
  auto first = dyn_cast<KernelModel>(getBody().front().front());
  return first && first.epilogueRowDims() ? first.getOperation() : nullptr;
}

void YieldOp::build(OpBuilder &, OperationState &) {}
