//===- Fusion.cpp - fusion, yield
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/Ops/OpSupport.h"
#include "dialects/Graph/ValidRows.h"
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
  if (getEpilogue() && (!getContraction() || getValidRows()))
    return emitOpError("has the epilogue of a library: its body must begin with a contraction that takes one, and it "
                       "can leave out no rows");
  return verifyValidRows();
}

LogicalResult FusionOp::verifyValidRows() {
  ArrayRef<int64_t> numbers = getValidRows().value_or(ArrayRef<int64_t>());
  if (!getValidRows())
    return success();
  SmallVector<Value> all(getInputs());
  llvm::append_range(all, getOutputs());
  auto inputs = static_cast<int64_t>(getInputs().size()), count = static_cast<int64_t>(all.size());
  for (auto [i, number] : llvm::enumerate(numbers))
    if (number < 0 || number >= (i == 0 ? inputs : count) || llvm::is_contained(numbers.take_front(i), number))
      return emitOpError("names tensor ") << number << " in 'rows'; the first number must name one of its " << inputs
                                          << " inputs, later ones an input or a result (results count on behind the "
                                          << "inputs), and no number may stand there twice";
  auto type = numbers.empty() ? RankedTensorType() : tensorType(all[numbers.front()]);
  if (!type || type.getRank() != 1 || !type.getElementType().isSignlessInteger(32))
    return emitOpError("needs a count of rows that is i32 with one dimension");
  if (numbers.size() < 2)
    return emitOpError("needs an input or a result that has rows");
  RankedTensorType first = tensorType(all[numbers[1]]);
  for (int64_t number : numbers.drop_front())
    if (RankedTensorType rows = tensorType(all[number]);
        rows.getRank() == 0 || rows.getDimSize(0) != first.getDimSize(0))
      return emitOpError("names tensors in 'rows' whose first dimensions differ: ") << first << " and " << rows;
  if (kernelThatLeavesRowsOut(*this))
    return success();
  for (int64_t number = inputs; number < count; ++number)
    if (!llvm::is_contained(numbers.drop_front(), number))
      return emitOpError("becomes code, which leaves out rows of all results: name result ")
             << number << " in 'rows' too";
  if (!haveRowsToLeaveOut(getOutputs().getTypes()))
    return emitOpError(kRowsToLeaveOut);
  return success();
}

KernelModel bowline::graph::kernelThatLeavesRowsOut(FusionOp fusion) {
  Block &body = fusion.getBody().front();
  if (!fusion.getValidRows() || !llvm::hasNItems(body, 2) || body.front().getNumOperands() == 0 ||
      body.front().getResults() != body.getTerminator()->getOperands())
    return {};
  return dyn_cast<KernelModel>(body.front());
}

Operation *FusionOp::getContraction() {
  auto first = dyn_cast<KernelModel>(getBody().front().front());
  return first && first.epilogueRowDims() ? first.getOperation() : nullptr;
}

void YieldOp::build(OpBuilder &, OperationState &) {}
