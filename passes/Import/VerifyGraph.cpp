//===- VerifyGraph.cpp - Verifiers of frontends' programs, and of those after phase `graph`
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Analysis/InPlaceUpdates.h"
#include "passes/Analysis/PhaseRules.h"
#include "passes/Import/Passes.h"

using namespace mlir;
using namespace bowline;

LogicalResult bowline::verifyInput(ModuleOp module) {
  return verifyAll(module, [](Operation *op) { return verifyGraphLevel(op, Phase::Input); });
}

LogicalResult bowline::verifyGraph(ModuleOp module) {
  if (failed(verifyAll(module, [](Operation *op) { return verifyGraphLevel(op, Phase::Graph); })))
    return failure();
  for (auto function : module.getOps<graph::FuncOp>())
    if (failed(verifyInPlaceUpdates(function)))
      return failure();
  return verifyEntries(module);
}
