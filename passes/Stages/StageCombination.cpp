//===- StageCombination.cpp - Scalars that stages share become sums and broadcasts
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Stages/StageCombination.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

#include <map>

using namespace mlir;
using namespace bowline;

bool StageCombination::run() {
  for (Operation &op : llvm::make_early_inc_range(function.getBody().front()))
    if (!isa<stage::CrossesStages>(op))
      visit(&op);
  // Erasing comes last: an operation created in the loop above must not be taken for one that was erased.
  while (!dead.empty()) {
    Operation *op = dead.pop_back_val();
    for (Value operand : op->getOperands())
      if (Operation *producer = operand.getDefiningOp(); producer && flow.isInnerCombination(producer))
        dead.push_back(producer);
    op->erase();
  }
  return changed;
}

void StageCombination::visit(Operation *op) {
  if (flow.isInnerCombination(op))
    return;
  if (flow.isCombination(op))
    return combine(op);
  StageDataflow::OperandStages stages = flow.operandStages(op);
  // The stage of its tensors computes an operation, which gets scalars of other stages by broadcasts. All stages
  // compute an operation on scalars alone that are of several stages, and all return, so that each of these scalars is
  // broadcast.
  bool isReturn = op->hasTrait<OpTrait::IsTerminator>();
  bool goesToAll = isReturn || (stages.tensors.empty() && stages.scalars.size() > 1);
  for (OpOperand &operand : op->getOpOperands()) {
    std::optional<int64_t> stage = flow.stageOf(operand.get());
    if (stage && isScalar(operand.get()) &&
        (goesToAll || (!stages.tensors.empty() && stages.tensors.front() != *stage)))
      operand.set(broadcast(operand.get(), *stage));
  }
}

Value StageCombination::broadcast(Value value, int64_t from) {
  if (Value known = broadcasts.lookup(value))
    return known;
  changed = true;
  OpBuilder builder(value.getContext());
  builder.setInsertionPointAfterValue(value);
  Value result = stage::BroadcastOp::create(builder, value.getLoc(), value, from);
  broadcasts[value] = result;
  return result;
}

/// The leaves of a tree of additions, in the order in which they are added.
void StageCombination::collect(Value value, SmallVectorImpl<Value> &leaves) {
  Operation *op = value.getDefiningOp();
  if (!op || !flow.isInnerCombination(op)) {
    leaves.push_back(value);
    return;
  }
  for (Value operand : op->getOperands())
    collect(operand, leaves);
}

void StageCombination::combine(Operation *root) {
  changed = true;
  SmallVector<Value> leaves;
  for (Value operand : root->getOperands())
    collect(operand, leaves);
  OpBuilder builder(root);
  auto add = [&](Value sum, Value leaf) -> Value {
    return sum ? Value(arith::AddFOp::create(builder, root->getLoc(), sum, leaf)) : leaf;
  };
  std::map<int64_t, Value> parts; // by stage
  Value floating;
  for (Value leaf : leaves) {
    std::optional<int64_t> stage = flow.stageOf(leaf);
    Value &sum = stage ? parts[*stage] : floating;
    sum = add(sum, leaf);
  }
  SmallVector<Value> sums;
  SmallVector<int64_t> from;
  for (auto [stage, sum] : parts) {
    from.push_back(stage);
    sums.push_back(sum);
  }
  Value total = stage::SumOp::create(builder, root->getLoc(), root->getResult(0).getType(), sums, from);
  if (floating)
    total = add(total, floating);
  root->getResult(0).replaceAllUsesWith(total);
  dead.push_back(root); // every other addition of the tree has one use, in the tree
}
