//===- EmitCommands.h - From plan.program to the plan's programs of commands
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_EMIT_EMITCOMMANDS_H
#define BOWLINE_COMPILER_EMIT_EMITCOMMANDS_H

#include "compiler/Emit/PlanTables.h"
#include "kernels/registry/data_check.h"

#include <memory>

namespace bowline {

/// Maps the objects that operations of one role name to their indices in the plan.
struct RoleNames {
  uint16_t role = 0;
  llvm::DenseMap<mlir::Value, uint32_t> buffers;
  llvm::DenseMap<mlir::StringAttr, uint32_t> kernels, programs;
  /// By kernel: the check that must run on its data before each launch, and the index of the check's kernel.
  llvm::DenseMap<mlir::StringAttr, std::pair<const kernels::DataCheck *, uint32_t>> checks;
  /// The index of the buffer with fault words. `faults` maps each checked launch to its first word there.
  uint32_t faultBuffer = 0;
  llvm::DenseMap<mlir::Operation *, uint64_t> faults;

  fbs::Operand operand(mlir::Value buffer) const { return fbs::Operand(buffers.lookup(buffer), 0); }
};

/// Emits a program of the role. The plan must already have its buffers, kernels and communicators.
std::unique_ptr<fbs::ProgramT> emitProgram(plan::ProgramOp op, const fbs::PlanT &plan, PlanTables &tables,
                                           const RoleNames &names);

} // namespace bowline

#endif // BOWLINE_COMPILER_EMIT_EMITCOMMANDS_H
