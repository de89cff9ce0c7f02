//===- PhasePass.cpp - Passes that say which phase they belong to
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Analysis/PhasePass.h"
#include "dialects/Graph/GraphOps.h"
#include "dialects/Plan/PlanOps.h"

using namespace mlir;
using namespace bowline;

template <typename OpTy> static Operation *firstOf(ModuleOp module) {
  auto found = module.getOps<OpTy>();
  return found.empty() ? nullptr : (*found.begin()).getOperation();
}

/// Checks the phase of a module without a phase attribute by its contents: passes up to phase Schedule work on
/// functions, later ones on programs.
static LogicalResult verifyLevel(ModuleOp module, Phase phase, StringRef pass) {
  if (phase <= Phase::Schedule) {
    if (Operation *program = firstOf<plan::ProgramOp>(module))
      return program->emitOpError() << "is a program of commands, which '" << pass << "', a pass of phase '"
                                    << nameOf(phase) << "', comes before; run it on functions";
    return success();
  }
  if (Operation *function = firstOf<graph::FuncOp>(module))
    return function->emitOpError() << "is no program of commands yet, which '" << pass << "', a pass of phase '"
                                   << nameOf(phase) << "', works on; run schedule-commands first";
  return success();
}

/// Fails with a diagnostic on a module that holds roles and no program of its own.
static LogicalResult verifyIsOneProgram(ModuleOp module, StringRef pass) {
  Operation *program = firstOf<ModuleOp>(module);
  if (!program)
    return success();
  return program->emitError() << "'" << pass
                              << "' is a pass on one program, and this is a role in a module of roles; run "
                              << "it on each of them: --pass-pipeline='builtin.module(builtin.module(" << pass << "))'";
}

LogicalResult bowline::verifyNeeds(ModuleOp module, Phase phase, StringRef pass, bool takesRoles) {
  if (failed(verifyPhaseName(module)) || (!takesRoles && failed(verifyIsOneProgram(module, pass))))
    return failure();
  std::optional<Phase> ended = phaseOf(module);
  if (!ended)
    return verifyLevel(module, phase, pass);
  if (*ended == phase || *ended == phaseBefore(phase))
    return success();
  return module.emitError() << "'" << pass << "' is a pass of phase '" << nameOf(phase) << "', which follows '"
                            << nameOf(phaseBefore(phase)) << "', but the module is at the end of '" << nameOf(*ended)
                            << "'; "
                            << (*ended < phase ? "run the phases between them, as bowline-compile does with "
                                               : "begin with an earlier module, as printed by ")
                            << (*ended < phase ? ("--compile-from=" + nameOf(*ended)).str()
                                               : ("--compile-to=" + nameOf(phaseBefore(phase))).str());
}
