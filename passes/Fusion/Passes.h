//===- Passes.h - Fusion passes
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_FUSION_PASSES_H
#define BOWLINE_PASSES_FUSION_PASSES_H

#include "passes/Analysis/PhasePass.h"

namespace bowline {

#define GEN_PASS_DECL
#include "passes/Fusion/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "passes/Fusion/Passes.h.inc"

/// Verifies the end of phase `fuse`: a kernel call has replaced every computation.
llvm::LogicalResult verifyFuse(mlir::ModuleOp module);

} // namespace bowline

#endif // BOWLINE_PASSES_FUSION_PASSES_H
