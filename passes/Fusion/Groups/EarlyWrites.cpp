//===- EarlyWrites.cpp - Add to accumulators as soon as there is something to add
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/GraphOps.h"
#include "passes/Fusion/Passes.h"
#include "llvm/ADT/StringMap.h"

namespace bowline {
#define GEN_PASS_DEF_EARLYWRITES
#include "passes/Fusion/Passes.h.inc"
} // namespace bowline

using namespace mlir;
using namespace bowline;

namespace {

class EarlyWrites : public bowline::impl::EarlyWritesBase<EarlyWrites> {
public:
  using EarlyWritesBase::EarlyWritesBase;

  void runOnProgram() override {
    SymbolTable symbols(getOperation());
    for (auto function : getOperation().getOps<graph::FuncOp>())
      moveUp(function.getBody().front(), symbols);
  }

private:
  static void moveUp(Block &block, SymbolTable &symbols) {
    llvm::StringMap<SmallVector<Operation *, 2>> accesses;
    for (Operation &op : block)
      if (auto read = dyn_cast<graph::ReadOp>(op))
        accesses[read.getVariable()].push_back(&op);
      else if (auto write = dyn_cast<graph::WriteOp>(op))
        accesses[write.getVariable()].push_back(&op);
    for (auto write : llvm::to_vector(block.getOps<graph::WriteOp>())) {
      auto state = symbols.lookup<graph::StateOp>(write.getVariable());
      ArrayRef<Operation *> others = accesses[write.getVariable()];
      if (!state || !state.isAccumulator() || others.size() != 2)
        continue;
      // The pattern is a read, one operation on it, and a write; nothing else moves.
      auto read = dyn_cast<graph::ReadOp>(others.front());
      Operation *sum = write.getValue().getDefiningOp();
      if (!read || !sum || !read->hasOneUse() || *read->user_begin() != sum || !moves(sum, write))
        continue;
      moveBehindOperands(sum, read);
      read->moveBefore(sum);
      write->moveAfter(sum);
    }
  }

  /// Whether `sum` computes the value that `write` stores and nothing else.
  static bool moves(Operation *sum, graph::WriteOp write) {
    return isa<graph::FusionOp>(sum) && sum->getNumResults() == 1 && sum->hasOneUse() &&
           *sum->user_begin() == write.getOperation();
  }

  static void moveBehindOperands(Operation *sum, Operation *read) {
    Operation *last = nullptr;
    for (Value operand : sum->getOperands())
      if (Operation *producer = operand.getDefiningOp();
          producer && producer != read && (!last || last->isBeforeInBlock(producer)))
        last = producer;
    if (last)
      sum->moveAfter(last);
  }
};

} // namespace
