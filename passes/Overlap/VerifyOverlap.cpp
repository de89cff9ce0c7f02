//===- VerifyOverlap.cpp - Verifier of the program after phase `overlap`
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Plan/PlanOps.h"
#include "passes/Analysis/PhaseRules.h"
#include "passes/Overlap/Passes.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace bowline;

/// A wait for an event that nothing signals is over at once, and orders nothing.
static LogicalResult verifyEvents(plan::ProgramOp program) {
  llvm::DenseSet<int64_t> signalled;
  program.walk([&](plan::SignalOp signal) { signalled.insert(signal.getEvent()); });
  WalkResult result = program.walk([&](plan::WaitOp wait) -> WalkResult {
    if (!signalled.contains(wait.getEvent()))
      return refuse(wait, Phase::Overlap, "no command of the program signals its event");
    return success();
  });
  return failure(result.wasInterrupted());
}

LogicalResult bowline::verifyOverlap(ModuleOp module) {
  return verifyAll(module, [](Operation *op) -> LogicalResult {
    if (failed(verifyPlanLevel(op, Phase::Overlap)))
      return failure();
    auto program = dyn_cast<plan::ProgramOp>(op);
    return program ? verifyEvents(program) : success();
  });
}
