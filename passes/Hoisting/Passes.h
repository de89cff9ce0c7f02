//===- Passes.h - Commands that run less often, or not at all
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_HOISTING_PASSES_H
#define BOWLINE_PASSES_HOISTING_PASSES_H

#include "passes/Analysis/PhasePass.h"

namespace bowline {

#define GEN_PASS_DECL
#include "passes/Hoisting/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "passes/Hoisting/Passes.h.inc"

/// Verifies the end of phase `hoist`: only the plan dialect remains, and entries of kind `prepare` have no ports.
llvm::LogicalResult verifyHoist(mlir::ModuleOp module);

} // namespace bowline

#endif // BOWLINE_PASSES_HOISTING_PASSES_H
