//===- VerifySteps.cpp - Whether each step keeps the results of a program
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Pipelines/VerifySteps.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Analysis/Roles.h"

using namespace mlir;
using namespace bowline;

LogicalResult bowline::verifySteps(ModuleOp module, ArrayRef<Step> steps, EquivalenceChecker &checker) {
  // Steps run one by one, without the ends of phases, which would say where the module is.
  module->removeAttr(kPhaseAttr);
  if (failed(checker.begin(module)))
    return failure();
  for (const Step &step : steps) {
    PassManager manager(module.getContext());
    addStep(manager, step);
    if (failed(manager.run(module)) || failed(checker.check(step.name, module)))
      return failure();
  }
  return success();
}

LogicalResult bowline::verifySteps(ModuleOp module, const PipelineOptions &options, Phase from, Phase to,
                                   EquivalenceChecker &checker) {
  if (from >= Phase::Local && failed(verifyRoles(module)))
    return failure();
  return verifySteps(module, stepsToRun(options, from, to), checker);
}
