//===- Passes.h - Overlap passes
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_OVERLAP_PASSES_H
#define BOWLINE_PASSES_OVERLAP_PASSES_H

#include "passes/Analysis/PhasePass.h"

#include <limits>

namespace bowline {

#define GEN_PASS_DECL
#include "passes/Overlap/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "passes/Overlap/Passes.h.inc"

/// Verifies the end of phase `overlap`: only the plan dialect remains, and each awaited event has a signal.
llvm::LogicalResult verifyOverlap(mlir::ModuleOp module);

} // namespace bowline

#endif // BOWLINE_PASSES_OVERLAP_PASSES_H
