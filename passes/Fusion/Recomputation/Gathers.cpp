//===- Gathers.cpp - Parameters that recomputation gathers again
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Dist/DistOps.h"
#include "passes/Fusion/Recomputation/Recomputation.h"
#include "llvm/ADT/STLExtras.h"

#include <functional>
#include <map>

using namespace mlir;
using namespace bowline;

/// The variable of which \p shard is a shard, perhaps rounded; empty where it is none.
static StringRef variableOf(Value shard) {
  while (Operation *op = shard.getDefiningOp()) {
    if (auto read = dyn_cast<graph::ReadOp>(op))
      return read.getVariable();
    bool isChain = op->getNumOperands() == 1 && op->getNumResults() == 1;
    if (!isChain || !(graph::isView(op) || isa<graph::FusionOp>(op)))
      return "";
    shard = op->getOperand(0);
  }
  return "";
}

/// Parameters that the forward part gathers, and those that the backward part does too. A function writes no parameter
/// that it gathers, so that the values are the same.
void Recomputation::findGathers() {
  std::map<std::pair<StringRef, const void *>, int> backward;
  for (bool forward : {false, true})
    for (const OpInfo &info : ops) {
      if (info.forward != forward || !info.op->hasAttr(dist::DistDialect::kPrefetchAttr))
        continue;
      for (auto [shard, id] : llvm::zip_equal(info.op->getOperands(), info.results)) {
        std::pair key(variableOf(shard), shard.getType().getAsOpaquePointer());
        if (key.first.empty())
          continue;
        if (!forward) {
          backward.try_emplace(key, id);
          continue;
        }
        auto known = backward.find(key);
        values[id].isGathered = true;
        values[id].received = false;
        values[id].again = known == backward.end() ? -1 : known->second;
      }
    }
}

Value Recomputation::gatherAgain(int value, OpBuilder &builder, function_ref<Value(Value)> rebuild) {
  Value again = values[values[value].again].value;
  Operation *before = &*builder.getInsertionPoint();
  std::function<void(Operation *)> moveUp = [&](Operation *op) {
    if (!op || op->isBeforeInBlock(before))
      return;
    for (OpOperand &operand : op->getOpOperands()) {
      operand.set(rebuild(operand.get()));
      moveUp(operand.get().getDefiningOp());
    }
    op->moveBefore(before);
  };
  moveUp(again.getDefiningOp());
  return again;
}
