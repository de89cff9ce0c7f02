//===- VerifyTrain.cpp - Verifier of the program after phase `train`
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Analysis/PhaseRules.h"
#include "passes/Training/Passes.h"

using namespace mlir;
using namespace bowline;

LogicalResult bowline::verifyTrain(ModuleOp module) {
  if (failed(verifyAll(module, [](Operation *op) { return verifyGraphLevel(op, Phase::Train); })))
    return failure();
  return verifyEntries(module);
}
