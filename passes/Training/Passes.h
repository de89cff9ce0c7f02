//===- Passes.h - Training passes
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_TRAINING_PASSES_H
#define BOWLINE_PASSES_TRAINING_PASSES_H

#include "passes/Analysis/PhasePass.h"
#include "passes/Analysis/TrainingNames.h"

namespace bowline {

#define GEN_PASS_DECL
#include "passes/Training/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "passes/Training/Passes.h.inc"

/// Verifies the end of phase `train`: the program has only graph-level operations, and an entry or a function to run.
llvm::LogicalResult verifyTrain(mlir::ModuleOp module);

} // namespace bowline

#endif // BOWLINE_PASSES_TRAINING_PASSES_H
