//===- VerifyHoist.cpp - Verifier of the program after phase `hoist`
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Plan/PlanOps.h"
#include "passes/Analysis/PhaseRules.h"
#include "passes/Hoisting/Passes.h"

using namespace mlir;
using namespace bowline;

LogicalResult bowline::verifyHoist(ModuleOp module) {
  return verifyAll(module, [](Operation *op) -> LogicalResult {
    if (failed(verifyPlanLevel(op, Phase::Hoist)))
      return failure();
    auto entry = dyn_cast<plan::EntryOp>(op);
    if (entry && entry.getKind() == EntryKind::Prepare && !(entry.getInputs().empty() && entry.getOutputs().empty()))
      return refuse(op, Phase::Hoist,
                    "an entry of kind prepare may only use persistent tensors; remove its inputs and outputs");
    return success();
  });
}
