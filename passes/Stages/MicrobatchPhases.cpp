//===- MicrobatchPhases.cpp - Forward and backward operations of a microbatch
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Stages/MicrobatchPhases.h"
#include "dialects/Stage/StageOps.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace bowline;

/// The accumulators of gradients.
static llvm::StringSet<> gradientsIn(ModuleOp module) {
  llvm::StringSet<> names;
  for (auto state : module.getOps<graph::StateOp>())
    if (state.isAccumulator() && state.getOf())
      names.insert(state.getName());
  return names;
}

namespace {
/// The inputs that a value depends on.
struct Origin {
  bool argument = false, parameter = false, transfer = false;
  /// Cheap to make again, or the same as making it: no activation.
  bool isRepeatable() const { return !transfer && !(argument && parameter); }
};
} // namespace

static llvm::DenseSet<Operation *> repeatableIn(Block &body, SymbolTable &symbols) {
  llvm::DenseMap<Value, Origin> origins;
  for (BlockArgument argument : body.getArguments())
    origins[argument].argument = true;
  llvm::DenseSet<Operation *> repeatable;
  for (Operation &op : body) {
    Origin origin;
    origin.transfer = isa<stage::TransferOp>(op);
    if (auto read = dyn_cast<graph::ReadOp>(op))
      origin.parameter = symbols.lookup<graph::ParamOp>(read.getVariable()) != nullptr;
    for (Value operand : op.getOperands()) {
      Origin other = origins.lookup(operand);
      origin.argument |= other.argument;
      origin.parameter |= other.parameter;
      origin.transfer |= other.transfer;
    }
    for (Value result : op.getResults())
      origins[result] = origin;
    if (origin.isRepeatable() && op.getNumResults() > 0)
      repeatable.insert(&op);
  }
  return repeatable;
}

MicrobatchPhases::MicrobatchPhases(graph::FuncOp function, SymbolTable &symbols) {
  llvm::StringSet<> gradients = gradientsIn(function->getParentOfType<ModuleOp>());
  Block &body = function.getBody().front();
  llvm::DenseSet<Operation *> repeatable = repeatableIn(body, symbols);
  // The walk goes from the last operation to the first, so that users have their phase before their operands.
  for (Operation &op : llvm::reverse(body)) {
    auto write = dyn_cast<graph::WriteOp>(op);
    bool forward = op.hasTrait<OpTrait::IsTerminator>() || (write && !gradients.contains(write.getVariable()));
    bool backward = write && !forward;
    for (Operation *user : op.getUsers()) {
      forward |= phaseOf(user) != StagePhase::Backward;
      backward |= phaseOf(user) != StagePhase::Forward;
    }
    bool isBoth = forward && backward && repeatable.contains(&op);
    phases[&op] = isBoth ? StagePhase::Both : forward ? StagePhase::Forward : StagePhase::Backward;
  }
}

StagePhase MicrobatchPhases::phaseOf(Operation *op) const { return phases.at(op); }
