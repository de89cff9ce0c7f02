//===- Passes.h - Memory passes
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_MEMORY_PASSES_H
#define BOWLINE_PASSES_MEMORY_PASSES_H

#include "passes/Analysis/PhasePass.h"

namespace bowline {

#define GEN_PASS_DECL
#include "passes/Memory/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "passes/Memory/Passes.h.inc"

/// Verifies that phase `memory` left the plan dialect alone, and a place for every buffer.
llvm::LogicalResult verifyMemory(mlir::ModuleOp module);

} // namespace bowline

#endif // BOWLINE_PASSES_MEMORY_PASSES_H
