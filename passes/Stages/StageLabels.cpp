//===- StageLabels.cpp - The stages and the phase of every operation
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Stages/StageLabels.h"
#include "mlir/IR/Builders.h"
#include "passes/Analysis/TrainingNames.h"
#include "passes/Stages/StageCombination.h"

using namespace mlir;
using namespace bowline;
using stage::StageDialect;

LogicalResult bowline::labelStages(ModuleOp module, int64_t count) {
  StageDataflow before(module, count);
  for (auto function : module.getOps<graph::FuncOp>())
    if (function.getPart() != graph::FunctionPart::Microbatch)
      StageCombination(function, before).run();
  return StageLabels(module, StageDataflow(module, count)).run();
}

bool StageLabels::runsPerMicrobatch(graph::FuncOp function) {
  return function.getPart() == graph::FunctionPart::Loss || function.getPart() == graph::FunctionPart::Microbatch;
}

LogicalResult StageLabels::run() {
  bool good = true;
  for (auto function : module.getOps<graph::FuncOp>())
    good &= succeeded(checkFunction(function));
  if (good) // else a missing transfer is the reason
    for (auto param : module.getOps<graph::ParamOp>())
      good &= succeeded(checkParameter(param));
  if (!good)
    return failure();

  for (Operation &op : *module.getBody()) {
    if (auto variable = dyn_cast<graph::Variable>(op))
      label(&op, flow.stagesOfVariable(variable.getVariableName()));
    auto function = dyn_cast<graph::FuncOp>(op);
    if (!function)
      continue;
    std::optional<MicrobatchPhases> phases;
    if (runsPerMicrobatch(function))
      phases.emplace(function, symbols);
    for (Operation &inner : function.getBody().front()) {
      label(&inner, flow.stagesOf(&inner));
      inner.removeAttr(StageDialect::kPhaseAttr);
      if (!phases)
        continue;
      StagePhase phase = phases->phaseOf(&inner);
      StringRef name = phase == StagePhase::Both       ? StageDialect::kBoth
                       : phase == StagePhase::Backward ? StageDialect::kBackward
                                                       : StageDialect::kForward;
      inner.setAttr(StageDialect::kPhaseAttr, StringAttr::get(module.getContext(), name));
    }
  }
  return success();
}

void StageLabels::label(Operation *op, const StageDataflow::Stages &stages) {
  SmallVector<int64_t> index(stages.set_bits_begin(), stages.set_bits_end());
  op->setAttr(StageDialect::kIndexAttr, DenseI64ArrayAttr::get(op->getContext(), index));
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

LogicalResult StageLabels::checkOperands(Operation *op) {
  std::optional<std::pair<unsigned, int64_t>> first; // operand and stage
  for (OpOperand &operand : op->getOpOperands()) {
    std::optional<int64_t> stage = flow.stageOf(operand.get());
    std::optional<int64_t> taken = StageDataflow::takenIn(operand);
    if (!stage)
      continue;
    if (taken && *taken != *stage)
      return op->emitOpError("takes operand ")
             << operand.getOperandNumber() << " from stage " << *taken << ", but it is a value of stage " << *stage;
    if (taken)
      continue;
    if (first && first->second != *stage)
      return op->emitOpError("has operand ")
             << first->first << " in stage " << first->second << " and operand " << operand.getOperandNumber()
             << " in stage " << *stage << "; a stage.transfer from " << std::min(first->second, *stage) << " to "
             << std::max(first->second, *stage) << " is missing";
    first = {operand.getOperandNumber(), *stage};
  }
  return success();
}

LogicalResult StageLabels::checkWrite(graph::WriteOp write) {
  std::optional<int64_t> stage = flow.stageOf(write.getValue()), home = flow.stageOf(write.getVariable());
  if (!stage || *stage == *home)
    return success();
  return write.emitOpError("writes a value of stage ")
         << *stage << " to " << write.getVariableAttr() << ", which is in stage " << *home << "; a stage.transfer from "
         << *stage << " to " << *home << " is missing";
}

LogicalResult StageLabels::checkReturn(Operation *op) {
  for (OpOperand &operand : op->getOpOperands())
    if (std::optional<int64_t> stage = flow.stageOf(operand.get()))
      return op->emitOpError("returns as result ")
             << operand.getOperandNumber() << " a " << operand.get().getType() << " of stage " << *stage
             << "; only scalars go from one stage to all callers";
  return success();
}

/// Values of a microbatch go to the next stage in the forward pass, and to the stage before in the backward pass.
LogicalResult StageLabels::checkTransfer(stage::TransferOp transfer, StagePhase phase) {
  int64_t from = transfer.getFrom(), to = transfer.getTo();
  if (phase == StagePhase::Backward ? to == from - 1 : to == from + 1)
    return success();
  bool isBackward = phase == StagePhase::Backward;
  return transfer.emitOpError("goes from stage ")
         << from << " to " << to << " in the " << (isBackward ? "backward" : "forward")
         << " pass of a microbatch, where a stage sends values only to the " << (isBackward ? "previous" : "next")
         << " stage";
}

LogicalResult StageLabels::checkFunction(graph::FuncOp function) {
  if (flow.count() == 1)
    return success();
  std::optional<MicrobatchPhases> phases;
  if (runsPerMicrobatch(function))
    phases.emplace(function, symbols);
  bool isStep = function.getPart() == graph::FunctionPart::Microbatch;
  for (Operation &op : function.getBody().front()) {
    if (auto write = dyn_cast<graph::WriteOp>(op); write && failed(checkWrite(write)))
      return failure();
    bool isReturn = op.hasTrait<OpTrait::IsTerminator>();
    if (failed(isReturn ? checkReturn(&op) : checkOperands(&op)))
      return failure();
    if (auto transfer = dyn_cast<stage::TransferOp>(op);
        transfer && phases && failed(checkTransfer(transfer, phases->phaseOf(transfer))))
      return failure();
    if (isStep && stage::isForAll(&op))
      return op.emitOpError("must not run per microbatch: all stages would wait for each other");
  }
  return success();
}

/// Follows the operations that several stages need from the reads of \p parameter up to any `stage.transfer`, and
/// returns the last of them in the first function that has one; null where no function has one.
static Operation *lastShared(ModuleOp module, StringRef parameter, const StageDataflow &flow) {
  Operation *last = nullptr;
  for (auto function : module.getOps<graph::FuncOp>()) {
    llvm::DenseSet<Operation *> dependent;
    for (Operation &op : function.getBody().front()) {
      auto read = dyn_cast<graph::ReadOp>(op);
      bool depends = (read && read.getVariable() == parameter) || llvm::any_of(op.getOperands(), [&](Value operand) {
                       return dependent.contains(operand.getDefiningOp());
                     });
      if (!depends || isa<stage::TransferOp>(op) || op.getNumResults() == 0 || flow.stagesOf(&op).count() < 2)
        continue;
      dependent.insert(&op);
      last = &op;
    }
    if (last)
      return last;
  }
  return last;
}

LogicalResult StageLabels::checkParameter(graph::ParamOp param) {
  StageDataflow::Stages stages = flow.stagesOfVariable(param.getName());
  if (flow.count() == 1 || stages.count() < 2)
    return success();
  Operation *shared = lastShared(module, param.getName(), flow);
  if (!shared) // no operation reads it
    return success();
  int first = stages.find_first(), second = stages.find_next(first);
  InFlightDiagnostic diagnostic = shared->emitOpError("depends on parameter '");
  diagnostic << param.getName() << "' and is needed in stages " << first << " and " << second;
  if (isa<graph::ReadOp>(shared))
    diagnostic << "; the later one needs a mirror, a graph.param with mirror_of";
  else
    diagnostic << "; a stage.transfer from " << first << " to " << second << " is missing";
  return diagnostic;
}
