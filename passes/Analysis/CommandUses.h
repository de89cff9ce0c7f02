//===- CommandUses.h - The buffers that commands use
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_ANALYSIS_COMMANDUSES_H
#define BOWLINE_PASSES_ANALYSIS_COMMANDUSES_H

#include "dialects/Plan/PlanOps.h"

namespace bowline {

/// How a command uses its operands.
struct CommandUse {
  mlir::Value buffer;
  bool reads;
  bool writes;
};

/// The buffers that a launch or a copy uses, in operand order. `symbols` finds kernels.
llvm::SmallVector<CommandUse> usesOf(mlir::Operation *command, mlir::SymbolTable &symbols);

} // namespace bowline

#endif // BOWLINE_PASSES_ANALYSIS_COMMANDUSES_H
