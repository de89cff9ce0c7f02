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

/// Fails with a diagnostic, naming the operation, where \p module still holds operations that \p phase must have
/// removed, or lacks those that it must have made. The verifier of each phase lies in its folder.
llvm::LogicalResult verifyPhase(mlir::ModuleOp module, Phase phase);

/// A pass that verifies the end of a phase, and writes into the module that the phase ended.
std::unique_ptr<mlir::Pass> createVerifyPhasePass(Phase phase);

} // namespace bowline

#endif // BOWLINE_COMPILER_PIPELINES_VERIFYPHASE_H
