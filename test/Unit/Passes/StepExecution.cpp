//===- StepExecution.cpp - Blocks executed operation by operation, with the roundings of their types
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/Unit/Passes/StepExecution.h"

#include "dialects/Graph/GraphOps.h"
#include "types/half.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::test;

static double rounded(Type element, double value) {
  if (element.isF32())
    return static_cast<float>(value);
  if (element.isBF16())
    return Bf16ToF32(F32ToBf16(static_cast<float>(value)));
  return value;
}

HostTensor test::roundedTo(Type type, HostTensor value) {
  for (double &element : value.data)
    element = rounded(cast<RankedTensorType>(type).getElementType(), element);
  return value;
}

HostTensor test::drawFor(Random &random, Type type, int64_t limit) {
  auto tensor = cast<RankedTensorType>(type);
  if (!isa<FloatType>(tensor.getElementType()))
    return random.integers(tensor.getShape().vec(), -1, limit - 1);
  return roundedTo(type, random.reals(tensor.getShape().vec(), -1, 1));
}

Tensors test::execute(Block &block, ArrayRef<HostTensor> arguments, Rounding rounding) {
  DenseMap<Value, HostTensor> values;
  auto bind = [&](Value value, HostTensor tensor) {
    values[value] = rounding == Rounding::None ? std::move(tensor) : roundedTo(value.getType(), std::move(tensor));
  };
  for (auto [parameter, argument] : llvm::zip_equal(block.getArguments(), arguments))
    bind(parameter, argument);
  for (Operation &op : block.without_terminator()) {
    Tensors operands, results;
    for (Value operand : op.getOperands())
      operands.push_back(values.at(operand));
    if (auto fusion = dyn_cast<graph::FusionOp>(op)) {
      results = execute(fusion.getBody().front(), operands, rounding);
    } else {
      for (Type type : op.getResultTypes())
        results.emplace_back(cast<RankedTensorType>(type).getShape().vec());
      auto interpretable = dyn_cast<graph::Interpretable>(op);
      if (!interpretable || failed(interpretable.interpret(operands, results)))
        ADD_FAILURE() << "cannot execute " << op.getName().getStringRef().str();
    }
    for (auto [value, result] : llvm::zip_equal(op.getResults(), results))
      bind(value, std::move(result));
  }
  Tensors returned;
  for (Value value : block.getTerminator()->getOperands())
    returned.push_back(values.at(value));
  return returned;
}
