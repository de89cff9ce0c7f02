//===- VerifyMemory.cpp - Verifier of the program after phase `memory`
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Plan/PlanOps.h"
#include "passes/Analysis/PhaseRules.h"
#include "passes/Memory/Passes.h"

using namespace mlir;
using namespace bowline;

LogicalResult bowline::verifyMemory(ModuleOp module) {
  return verifyAll(module, [](Operation *op) -> LogicalResult {
    if (failed(verifyPlanLevel(op, Phase::Memory)))
      return failure();
    if (auto buffer = dyn_cast<plan::BufferOp>(op); buffer && !buffer.getOffset())
      return refuse(op, Phase::Memory, "every buffer must have an offset");
    return success();
  });
}
