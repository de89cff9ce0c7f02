//===- BackwardInput.cpp - What of a backward pass the stage before waits for
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

static StringRef phaseOf(Operation *op) {
  auto phase = op->getAttrOfType<StringAttr>(StageDialect::kPhaseAttr);
  return phase ? phase.getValue() : StringRef();
}

bool bowline::isBackward(Operation *op) { return phaseOf(op) == StageDialect::kBackward; }
bool bowline::isInBothPhases(Operation *op) { return phaseOf(op) == StageDialect::kBoth; }

llvm::DenseSet<Operation *> bowline::findBackwardInput(graph::FuncOp function, int64_t stage) {
  llvm::DenseSet<Operation *> input;
  // The walk goes from the last operation to the first, so that users are known before what they use.
  for (Operation &op : llvm::reverse(function.getBody().front())) {
    if (!isBackward(&op) || isa<stage::TransferOp>(op) || !llvm::is_contained(stage::indexOf(&op), stage))
      continue;
    if (llvm::any_of(op.getUsers(), [&](Operation *user) {
          auto transfer = dyn_cast<stage::TransferOp>(user);
          return transfer ? static_cast<int64_t>(transfer.getFrom()) == stage : input.contains(user);
        }))
      input.insert(&op);
  }
  return input;
}
