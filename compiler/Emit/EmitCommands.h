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

/// The plan's indices of the objects that operations of one role name.
struct RoleNames {
  uint16_t role = 0;
  llvm::DenseMap<mlir::Value, uint32_t> buffers;
  llvm::DenseMap<mlir::StringAttr, uint32_t> kernels, programs;
  /// By kernel: the check of its data before each launch, and the kernel that does it.
  llvm::DenseMap<mlir::StringAttr, std::pair<const kernels::DataCheck *, uint32_t>> checks;
  /// The buffer with a word for each launch whose data are checked, and which word.
  uint32_t faultBuffer = 0;
  llvm::DenseMap<mlir::Operation *, uint64_t> faults;

  fbs::Operand operand(mlir::Value buffer) const { return fbs::Operand(buffers.lookup(buffer), 0); }
};

/// A program of the role whose buffers, kernels and communicators are in the plan already.
std::unique_ptr<fbs::ProgramT> emitProgram(plan::ProgramOp op, const fbs::PlanT &plan, PlanTables &tables,
                                           const RoleNames &names);

} // namespace bowline

#endif // BOWLINE_COMPILER_EMIT_EMITCOMMANDS_H
