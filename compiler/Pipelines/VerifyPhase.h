//===- VerifyPhase.h - What must be gone after each phase
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_PIPELINES_VERIFYPHASE_H
#define BOWLINE_COMPILER_PIPELINES_VERIFYPHASE_H

#include "compiler/Pipelines/Phase.h"
#include "mlir/Pass/Pass.h"

namespace bowline {

/// A pass that fails, naming the operation, where the module still holds what `phase` must have removed, or lacks what
/// it must have made.
std::unique_ptr<mlir::Pass> createVerifyPhasePass(Phase phase);

} // namespace bowline

#endif // BOWLINE_COMPILER_PIPELINES_VERIFYPHASE_H
