//===- PhasePass.h - Passes that say which phase they belong to
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_ANALYSIS_PHASEPASS_H
#define BOWLINE_PASSES_ANALYSIS_PHASEPASS_H

#include "dialects/Program/Phase.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace bowline {

/// Fails with a diagnostic that names \p pass unless passes of \p phase may run on \p module. The last completed phase
/// of the module must be the one before \p phase, or \p phase itself. A module without the attribute, such as a test
/// that a person wrote, must contain functions for passes up to `schedule`, and commands for later ones. Fails on a
/// module that holds roles (passes/Analysis/Roles.h) unless \p takesRoles: other passes run on each role.
llvm::LogicalResult verifyNeeds(mlir::ModuleOp module, Phase phase, llvm::StringRef pass, bool takesRoles = false);

/// A pass of a phase. It fails on a module that the phase does not take.
class ProgramPass : public mlir::OperationPass<mlir::ModuleOp> {
public:
  Phase getPhase() const { return phase; }

  void runOnOperation() final {
    if (mlir::failed(verifyNeeds(getOperation(), phase, getArgument(), takesRoles())))
      return signalPassFailure();
    runOnProgram();
  }

protected:
  ProgramPass(mlir::TypeID id, Phase phase) : OperationPass(id), phase(phase) {}
  ProgramPass(const ProgramPass &) = default;

  virtual void runOnProgram() = 0;
  /// Returns whether the pass accepts the outer module that holds the roles.
  virtual bool takesRoles() const { return false; }

private:
  Phase phase;
};

/// The base class that Passes.td names for a pass (PhasePass.td).
template <Phase kPhase> class PhasePass : public ProgramPass {
protected:
  explicit PhasePass(mlir::TypeID id) : ProgramPass(id, kPhase) {}
  PhasePass(const PhasePass &) = default;
};

} // namespace bowline

#endif // BOWLINE_PASSES_ANALYSIS_PHASEPASS_H
