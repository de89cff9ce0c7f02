//===- Passes.h - Import passes
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_IMPORT_PASSES_H
#define BOWLINE_PASSES_IMPORT_PASSES_H

#include "passes/Analysis/PhasePass.h"

namespace bowline {

#define GEN_PASS_DECL
#include "passes/Import/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "passes/Import/Passes.h.inc"

/// Verifies that a frontend wrote operations of the graph level alone.
llvm::LogicalResult verifyInput(mlir::ModuleOp module);

/// Verifies the end of phase `graph`: the program is at the graph level, and has an entry or a function to run.
llvm::LogicalResult verifyGraph(mlir::ModuleOp module);

} // namespace bowline

#endif // BOWLINE_PASSES_IMPORT_PASSES_H
