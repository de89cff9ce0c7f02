//===- EmitRole.h - From the module of a role to its part of the plan
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_EMIT_EMITROLE_H
#define BOWLINE_COMPILER_EMIT_EMITROLE_H

#include "compiler/Emit/PlanTables.h"

namespace bowline {

/// Adds the contents of \p module to \p plan: arenas, buffers, kernels and code, programs, states, constants and
/// entries. Returns the bytes of the role's arena in space Device. Fails with a diagnostic where a part is missing.
llvm::FailureOr<uint64_t> emitRole(mlir::ModuleOp module, uint16_t role, fbs::PlanT &plan, PlanTables &tables);

} // namespace bowline

#endif // BOWLINE_COMPILER_EMIT_EMITROLE_H
