//===- GradientOrder.cpp - Gradients are exchanged in the order in which they become ready
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Local/Collectives/GradientOrder.h"
#include "dialects/Stage/StageOps.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace bowline;

void GradientOrder::run(graph::EntryOp entry) {
  ready.clear();
  for (auto reference : entry.getFunctions().getAsRange<FlatSymbolRefAttr>()) {
    Block &block = symbols.lookup<graph::FuncOp>(reference.getValue()).getBody().front();
    sort(block);
    learn(block);
  }
}

void GradientOrder::learn(Block &block) {
  DenseMap<Operation *, int64_t> position;
  for (Operation &op : block) {
    position[&op] = next++;
    auto write = dyn_cast<graph::WriteOp>(op);
    Operation *value = write ? write.getValue().getDefiningOp() : nullptr;
    if (!value)
      continue;
    // The place of an accumulation is arbitrary; the place of the added value says when the gradient is known.
    int64_t last = -1;
    bool accumulates = false;
    for (Value operand : value->getOperands()) {
      auto read = operand.getDefiningOp<graph::ReadOp>();
      if (read && read.getVariable() == write.getVariable())
        accumulates = true;
      else
        last = std::max(last, position.lookup(operand.getDefiningOp()));
    }
    ready[write.getVariable()] = accumulates && last >= 0 ? last : position.lookup(value);
  }
}

/// The operations from a read to the operand of `collective`, and `collective` too; empty where there are others.
static SmallVector<Operation *> chainTo(Operation *collective) {
  SmallVector<Operation *> chain = {collective};
  while (!isa<graph::ReadOp>(chain.back())) {
    Operation *source = nullptr;
    for (Value operand : chain.back()->getOperands()) {
      Operation *producer = operand.getDefiningOp();
      if (producer && producer->hasTrait<OpTrait::ConstantLike>())
        continue;
      if (source || !producer || !producer->hasOneUse() || producer->getNumResults() != 1)
        return {};
      source = producer;
    }
    if (!source)
      return {};
    chain.push_back(source);
  }
  std::reverse(chain.begin(), chain.end());
  return chain;
}

void GradientOrder::sort(Block &block) {
  struct Exchange {
    int64_t ready;
    SmallVector<Operation *> chain;
  };
  llvm::StringSet<> written;
  std::vector<Exchange> exchanges;
  for (Operation &op : block) {
    if (auto write = dyn_cast<graph::WriteOp>(op))
      written.insert(write.getVariable());
    if (!isa<dist::AllReduceOp, dist::ReduceScatterOp>(op) || stage::isBetweenStages(&op))
      continue;
    SmallVector<Operation *> chain = chainTo(&op);
    if (chain.empty())
      continue;
    StringRef variable = cast<graph::ReadOp>(chain.front()).getVariable();
    auto state = symbols.lookup<graph::StateOp>(variable);
    bool isGradient = state && state.isAccumulator();
    if (isGradient && ready.contains(variable) && !written.contains(variable))
      exchanges.push_back({ready.lookup(variable), std::move(chain)});
  }
  if (exchanges.size() < 2)
    return;
  llvm::stable_sort(exchanges, [](const Exchange &a, const Exchange &b) { return a.ready < b.ready; });
  Operation *place = exchanges.front().chain.front();
  for (const Exchange &exchange : exchanges)
    if (exchange.chain.front()->isBeforeInBlock(place))
      place = exchange.chain.front();
  // The chains move in front of the first read of any of them.
  Operation *before = place->getPrevNode();
  auto move = [&](Operation *op) {
    if (before)
      op->moveAfter(before);
    else
      op->moveBefore(&block, block.begin());
    before = op;
  };
  for (const Exchange &exchange : exchanges)
    for (Operation *op : exchange.chain) {
      for (Value operand : op->getOperands())
        if (Operation *constant = operand.getDefiningOp(); constant->hasTrait<OpTrait::ConstantLike>())
          constant->moveBefore(&block, block.begin());
      move(op);
    }
}
