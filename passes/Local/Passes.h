//===- Passes.h - From global tensors to the programs of ranks
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_LOCAL_PASSES_H
#define BOWLINE_PASSES_LOCAL_PASSES_H

#include "passes/Analysis/PhasePass.h"

namespace bowline {

#define GEN_PASS_DECL
#include "passes/Local/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "passes/Local/Passes.h.inc"

/// Verifies the end of phase `local`: types are local, and collectives have the forms that communicators execute.
llvm::LogicalResult verifyLocal(mlir::ModuleOp module);

} // namespace bowline

#endif // BOWLINE_PASSES_LOCAL_PASSES_H
