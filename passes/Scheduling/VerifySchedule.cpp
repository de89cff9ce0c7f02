//===- VerifySchedule.cpp - Verifier of the program after phase `schedule`
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Analysis/PhaseRules.h"
#include "passes/Scheduling/Passes.h"

using namespace mlir;
using namespace bowline;

LogicalResult bowline::verifySchedule(ModuleOp module) {
  return verifyAll(module, [](Operation *op) {
    return isPlanLevel(op) || isKernelBody(op)
               ? success()
               : refuse(op, Phase::Schedule, "only the plan dialect and the bodies of kernels are left");
  });
}
