//===- VerifyCodegen.cpp - Verifier of the program after phase `codegen`
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/GenerateKernels.h"
#include "passes/Analysis/PhaseRules.h"

using namespace mlir;
using namespace bowline;

LogicalResult bowline::verifyCodegen(ModuleOp module) {
  return verifyAll(module, [](Operation *op) { return verifyPlanLevel(op, Phase::Codegen); });
}
