//===- GraphOpInterfaces.cpp - Facts that operations state for algorithms
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/GraphOpInterfaces.h"
#include "mlir/IR/Diagnostics.h"

using namespace mlir;
using namespace bowline::graph;

#include "dialects/Graph/GraphOpInterfaces.cpp.inc"

static bool isElementwise(Operation *op) { return op->hasTrait<OpTrait::Elementwise>(); }

//===----------------------------------------------------------------------===//
// Cost
//===----------------------------------------------------------------------===//

double bowline::graph::byteCount(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return 0;
  return static_cast<double>(tensor.getNumElements()) * llvm::divideCeil(tensor.getElementTypeBitWidth(), 8);
}

double bowline::graph::bytesTouched(Operation *op) {
  double bytes = 0;
  auto model = dyn_cast<CostModel>(op);
  for (OpOperand &operand : op->getOpOperands())
    bytes += model ? model.bytesRead(operand.getOperandNumber()) : byteCount(operand.get().getType());
  for (Type type : op->getResultTypes())
    bytes += byteCount(type);
  return bytes;
}

RepeatCost bowline::graph::repeatCostOf(Operation *op) {
  auto model = dyn_cast<CostModel>(op);
  return model ? model.repeatCost() : repeatCostByTraits(op);
}

RepeatCost bowline::graph::repeatCostByTraits(Operation *op) {
  bool isActivation = isElementwise(op) && op->getNumOperands() == 1 && op->getNumResults() == 1 &&
                      op->getOperand(0).getType() == op->getResult(0).getType();
  return isActivation ? RepeatCost::Activation : RepeatCost::Full;
}

//===----------------------------------------------------------------------===//
// Precision and code
//===----------------------------------------------------------------------===//

Precision bowline::graph::precisionOf(Operation *op) {
  auto model = dyn_cast<PrecisionModel>(op);
  return model ? model.precision() : precisionByTraits(op);
}

Precision bowline::graph::precisionByTraits(Operation *op) {
  return isElementwise(op) ? Precision::Promote : Precision::Keep;
}

FusionRole bowline::graph::fusionRoleOf(Operation *op) {
  auto model = dyn_cast<FusionModel>(op);
  return model ? model.fusionRole() : fusionRoleByTraits(op);
}

FusionRole bowline::graph::fusionRoleByTraits(Operation *op) {
  return isElementwise(op) ? FusionRole::Elementwise : FusionRole::None;
}

bool bowline::graph::canBeInEpilogue(Operation *op) {
  FusionRole role = fusionRoleOf(op);
  return role == FusionRole::Elementwise || role == FusionRole::Repeated;
}

ArrayRef<int64_t> bowline::graph::fusionDomainOf(Operation *op) {
  auto model = dyn_cast<FusionModel>(op);
  return model ? model.fusionDomain() : fusionDomainByTraits(op);
}

ArrayRef<int64_t> bowline::graph::fusionDomainByTraits(Operation *op) {
  Value first = isElementwise(op) || op->getNumOperands() == 0 ? Value(op->getResult(0)) : op->getOperand(0);
  return cast<RankedTensorType>(first.getType()).getShape();
}

bool bowline::graph::isRepetition(Operation *op) {
  return fusionRoleOf(op) == FusionRole::Repeated && op->getNumOperands() == 1;
}

SmallVector<int64_t> bowline::graph::repeatedDims(Operation *repetition) {
  FactorRule rule = cast<Factored>(repetition).factorRule();
  return llvm::map_to_vector(rule.operands.front(), [&](const auto &factors) {
    return static_cast<int64_t>(llvm::find(rule.results.front(), factors) - rule.results.front().begin());
  });
}

//===----------------------------------------------------------------------===//
// Padding
//===----------------------------------------------------------------------===//

double bowline::graph::absentLogit(Type elementType) { return elementType.isF16() ? -6e4 : -1e30; }

PaddingContext::Number bowline::graph::paddingByTraits(Operation *op, const PaddingContext &context) {
  return isElementwise(op) ? paddingByEvaluation(op, context) : std::nullopt;
}

PaddingContext::Number bowline::graph::paddingByEvaluation(Operation *op, const PaddingContext &context) {
  auto interpretable = dyn_cast<Interpretable>(op);
  if (!interpretable || op->getNumResults() != 1)
    return std::nullopt;
  SmallVector<HostTensor> operands;
  for (unsigned i = 0; i < op->getNumOperands(); ++i) {
    PaddingContext::Number number = context.numberIn(i);
    if (!number)
      return std::nullopt;
    operands.emplace_back(std::vector<int64_t>{1});
    operands.back().data[0] = *number;
  }
  SmallVector<HostTensor> results(1, HostTensor(std::vector<int64_t>{1}));
  // An operation that fails to evaluate has an unknown result, and reports nothing.
  ScopedDiagnosticHandler handler(op->getContext(), [](Diagnostic &) { return success(); });
  if (failed(interpretable.interpret(operands, results)))
    return std::nullopt;
  return results[0].data[0];
}
