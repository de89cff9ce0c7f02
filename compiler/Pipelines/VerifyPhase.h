//===- VerifyPhase.h - The end of each phase
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_PIPELINES_VERIFYPHASE_H
#define BOWLINE_COMPILER_PIPELINES_VERIFYPHASE_H

#include "dialects/Program/Phase.h"
#include "mlir/Pass/Pass.h"

namespace bowline {

/// Fails with a diagnostic, naming the operation, where \p module has operations that \p phase must remove, or lacks
/// those that it must create. The verifier of each phase lies in the folder of that phase.
llvm::LogicalResult verifyPhase(mlir::ModuleOp module, Phase phase);

/// Returns a pass that calls verifyPhase and records in the module that the phase is complete.
std::unique_ptr<mlir::Pass> createVerifyPhasePass(Phase phase);

} // namespace bowline

#endif // BOWLINE_COMPILER_PIPELINES_VERIFYPHASE_H
