//===- Fusion.cpp - fusion, yield
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/Ops/OpSupport.h"
#include "dialects/Program/ValidRows.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace bowline::graph;

LogicalResult FusionOp::verify() {
  Block &body = getBody().front();
  if (body.getArgumentTypes() != getInputs().getTypes())
    return emitOpError("body arguments must have the types of the inputs");
  if (body.getTerminator()->getOperandTypes() != getOutputs().getTypes())
    return emitOpError("graph.yield must have the types of the results");
  return verifyValidRows();
}

LogicalResult FusionOp::verifyValidRows() {
  ArrayRef<int64_t> numbers = getValidRows().value_or(ArrayRef<int64_t>());
  if (!getValidRows())
    return success();
  auto inputs = static_cast<int64_t>(getInputs().size());
  for (auto [i, number] : llvm::enumerate(numbers))
    if (number < 0 || number >= inputs || llvm::is_contained(numbers.take_front(i), number))
      return emitOpError("names input ") << number << " as its count of rows or as one that has rows; each must be one "
                                         << "of its " << inputs << " inputs, and a different one";
  auto count = numbers.empty() ? RankedTensorType() : tensorType(getInputs()[numbers.front()]);
  if (!count || count.getRank() != 1 || !count.getElementType().isSignlessInteger(32))
    return emitOpError("needs a count of rows that is i32 with one dimension");
  SmallVector<Value> tensors(getOutputs());
  for (int64_t number : numbers.drop_front())
    tensors.push_back(getInputs()[number]);
  for (Value tensor : tensors)
    if (tensorType(tensor).getRank() == 0 ||
        tensorType(tensor).getDimSize(0) != tensorType(tensors.front()).getDimSize(0))
      return emitOpError("has rows, which are the first dimension of all results and of the inputs that it names: ")
             << tensor.getType() << " has others than " << tensors.front().getType();
  if (!haveRowsToLeaveOut(getOutputs().getTypes()))
    return emitOpError(kRowsToLeaveOut);
  return success();
}

Operation *FusionOp::getContraction() {
  auto first = dyn_cast<KernelModel>(getBody().front().front());
  return first && first.epilogueRowDims() ? first.getOperation() : nullptr;
}

void YieldOp::build(OpBuilder &, OperationState &) {}
