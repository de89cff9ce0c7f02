//===- BackwardInput.cpp - The part of a backward pass that the stage before waits for
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Local/Stages/BackwardInput.h"
#include "dialects/Stage/StageOps.h"

using namespace mlir;
using namespace bowline;
using stage::StageDialect;

static StringRef phaseLabelOf(Operation *op) {
  auto phase = op->getAttrOfType<StringAttr>(StageDialect::kPhaseAttr);
  return phase ? phase.getValue() : StringRef();
}

bool bowline::isBackward(Operation *op) { return phaseLabelOf(op) == StageDialect::kBackward; }
bool bowline::isInBothPhases(Operation *op) { return phaseLabelOf(op) == StageDialect::kBoth; }

static bool isOfStage(Operation *op, int64_t stage) {
  return isBackward(op) && !isa<stage::TransferOp>(op) && llvm::is_contained(stage::indexOf(op), stage);
}

/// The products that no operation of \p input needs, and the operations that only these use or that need them.
static llvm::DenseSet<Operation *> findProducts(Block &block, int64_t stage, const llvm::DenseSet<Operation *> &input) {
  llvm::DenseSet<Operation *> products;
  auto isLeft = [&](Operation &op) { return isOfStage(&op, stage) && !input.contains(&op) && !products.contains(&op); };
  auto isOfProducts = [&](Operation *op) { return products.contains(op); };
  for (Operation &op : llvm::reverse(block))
    if (isLeft(op) && (graph::isContraction(&op) || llvm::any_of(op.getUsers(), isOfProducts)))
      products.insert(&op);
  for (Operation &op : block)
    if (isLeft(op) && llvm::any_of(op.getOperands(), [&](Value value) { return isOfProducts(value.getDefiningOp()); }))
      products.insert(&op);
  for (Operation &op : llvm::reverse(block))
    if (isLeft(op) && !op.use_empty() && llvm::all_of(op.getUsers(), isOfProducts))
      products.insert(&op);
  return products;
}

llvm::DenseSet<Operation *> bowline::findBackwardInput(graph::FuncOp function, int64_t stage) {
  llvm::DenseSet<Operation *> input;
  Block &block = function.getBody().front();
  // The walk goes from the last operation to the first, so that users are known before their operands.
  for (Operation &op : llvm::reverse(block)) {
    if (!isOfStage(&op, stage))
      continue;
    if (llvm::any_of(op.getUsers(), [&](Operation *user) {
          auto transfer = dyn_cast<stage::TransferOp>(user);
          return transfer ? static_cast<int64_t>(transfer.getFrom()) == stage : input.contains(user);
        }))
      input.insert(&op);
  }
  if (input.empty())
    return input;
  llvm::DenseSet<Operation *> products = findProducts(block, stage, input);
  for (Operation &op : block)
    if (isOfStage(&op, stage) && !products.contains(&op))
      input.insert(&op);
  return input;
}
