//===- Passes.h - From functions to programs of commands
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_SCHEDULING_PASSES_H
#define BOWLINE_PASSES_SCHEDULING_PASSES_H

#include "passes/Analysis/PhasePass.h"

namespace bowline {

#define GEN_PASS_DECL
#include "passes/Scheduling/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "passes/Scheduling/Passes.h.inc"

/// Verifies the end of phase `schedule`: only programs of commands and bodies of kernels remain.
llvm::LogicalResult verifySchedule(mlir::ModuleOp module);

} // namespace bowline

#endif // BOWLINE_PASSES_SCHEDULING_PASSES_H
