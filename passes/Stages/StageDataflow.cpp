//===- StageDataflow.cpp - Stages that need a value, from the transfers between them
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Stages/StageDataflow.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace bowline;

bool bowline::isScalar(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() == 0;
}

StageDataflow::StageDataflow(ModuleOp module, int64_t count) : numStages(count) {
  if (count == 1)
    return; // everything floats, in the only stage
  SmallVector<Operation *> ops;
  for (auto function : module.getOps<graph::FuncOp>())
    for (Operation &op : function.getBody().front())
      ops.push_back(&op);
  // Operations come behind their operands, so that a round is exact except for values of variables. Variables only get
  // stages, and needs only grow, so that both end.
  for (bool changed = true; changed;) {
    changed = false;
    for (Operation *op : ops)
      changed |= propagate(op);
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (Operation *op : llvm::reverse(ops))
      changed |= collectNeeds(op);
  }
}

//===----------------------------------------------------------------------===//
// Stages
//===----------------------------------------------------------------------===//

std::optional<int64_t> StageDataflow::stageOf(Value value) const {
  auto it = values.find(value);
  return it == values.end() ? std::nullopt : std::optional(it->second);
}

std::optional<int64_t> StageDataflow::stageOf(StringRef variable) const {
  auto it = variables.find(variable);
  return it == variables.end() ? std::nullopt : std::optional(it->second);
}

std::optional<int64_t> StageDataflow::takenIn(OpOperand &operand) {
  auto crosses = dyn_cast<stage::CrossesStages>(operand.getOwner());
  return crosses ? std::optional(crosses.stageOfOperand(operand.getOperandNumber())) : std::nullopt;
}

StageDataflow::OperandStages StageDataflow::operandStages(Operation *op) const {
  OperandStages result;
  for (Value operand : op->getOperands())
    if (std::optional<int64_t> stage = stageOf(operand)) {
      auto &list = isScalar(operand) ? result.scalars : result.tensors;
      if (!llvm::is_contained(list, *stage))
        list.push_back(*stage);
    }
  llvm::sort(result.tensors);
  llvm::sort(result.scalars);
  return result;
}

static bool isScalarAddition(Operation *op) { return isa<arith::AddFOp>(op) && isScalar(op->getResult(0)); }

bool StageDataflow::isInnerCombination(Operation *op) const {
  return combinations.contains(op) && op->hasOneUse() && isScalarAddition(*op->user_begin());
}

bool StageDataflow::addsStages(Operation *op) const {
  return isScalarAddition(op) &&
         (operandStages(op).scalars.size() > 1 || llvm::any_of(op->getOperands(), [&](Value operand) {
            Operation *producer = operand.getDefiningOp();
            return producer && isInnerCombination(producer);
          }));
}

/// Scalars of several stages alone will be combined for all stages; beside tensors they go where those are.
std::optional<int64_t> StageDataflow::resultStage(Operation *op) const {
  if (auto crosses = dyn_cast<stage::CrossesStages>(op))
    return crosses.stageOfResult();
  if (auto read = dyn_cast<graph::ReadOp>(op))
    return stageOf(read.getVariable());
  if (combinations.contains(op))
    return std::nullopt;
  OperandStages stages = operandStages(op);
  if (!stages.tensors.empty())
    return stages.tensors.front();
  return stages.scalars.size() == 1 ? std::optional(stages.scalars.front()) : std::nullopt;
}

bool StageDataflow::propagate(Operation *op) {
  if (auto write = dyn_cast<graph::WriteOp>(op)) {
    std::optional<int64_t> stage = stageOf(write.getValue());
    return stage && variables.try_emplace(write.getVariable(), *stage).second;
  }
  if (addsStages(op))
    combinations.insert(op);
  else
    combinations.erase(op);
  std::optional<int64_t> stage = resultStage(op);
  for (Value result : op->getResults())
    if (stage)
      values[result] = *stage;
    else
      values.erase(result);
  return false;
}

//===----------------------------------------------------------------------===//
// Needs
//===----------------------------------------------------------------------===//

StageDataflow::Stages StageDataflow::only(int64_t stage) const {
  Stages stages = none();
  stages.set(static_cast<unsigned>(stage));
  return stages;
}

StageDataflow::Stages StageDataflow::stagesOf(Operation *op) const {
  if (numStages == 1 || stage::isForAll(op) || op->hasTrait<OpTrait::IsTerminator>())
    return all();
  if (auto transfer = dyn_cast<stage::TransferOp>(op)) {
    Stages stages = only(transfer.getFrom());
    stages.set(static_cast<unsigned>(transfer.getTo()));
    return stages;
  }
  if (auto write = dyn_cast<graph::WriteOp>(op))
    return stagesOfVariable(write.getVariable());
  if (op->getNumResults() > 0)
    if (std::optional<int64_t> stage = stageOf(op->getResult(0)))
      return only(*stage);
  auto it = needs.find(op);
  return it == needs.end() ? all() : needsOf(it->second);
}

StageDataflow::Stages StageDataflow::stagesOfVariable(StringRef variable) const {
  if (std::optional<int64_t> stage = stageOf(variable))
    return only(*stage);
  auto it = variableNeeds.find(variable);
  return it == variableNeeds.end() ? all() : needsOf(it->second);
}

/// Whether the results of an operation have no stage and are not known to be there for all.
bool StageDataflow::needsAreCollected(Operation *op) const {
  return op->getNumResults() > 0 && !stageOf(op->getResult(0)) && !stage::isForAll(op);
}

/// The stages that use a floating value, as far as they are known.
StageDataflow::Stages StageDataflow::neededBy(OpOperand &use) const {
  Operation *user = use.getOwner();
  if (std::optional<int64_t> stage = takenIn(use))
    return only(*stage);
  if (auto write = dyn_cast<graph::WriteOp>(user); write && !stageOf(write.getVariable())) {
    auto it = variableNeeds.find(write.getVariable());
    return it == variableNeeds.end() ? none() : it->second;
  }
  if (!needsAreCollected(user))
    return stagesOf(user);
  auto it = needs.find(user);
  return it == needs.end() ? none() : it->second;
}

bool StageDataflow::collectNeeds(Operation *op) {
  if (!needsAreCollected(op))
    return false;
  Stages &present = needs.try_emplace(op, none()).first->second;
  Stages before = present;
  for (OpOperand &use : op->getUses())
    present |= neededBy(use);
  bool changed = present != before;
  if (auto read = dyn_cast<graph::ReadOp>(op)) {
    Stages &variable = variableNeeds.try_emplace(read.getVariable(), none()).first->second;
    changed |= present.test(variable);
    variable |= present;
  }
  return changed;
}
