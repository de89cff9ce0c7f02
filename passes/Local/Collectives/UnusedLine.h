//===- UnusedLine.h - A line of the strategy that a program gives nothing to do
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_LOCAL_COLLECTIVES_UNUSEDLINE_H
#define BOWLINE_PASSES_LOCAL_COLLECTIVES_UNUSEDLINE_H

#include "mlir/IR/BuiltinOps.h"

namespace bowline {

/// Emits a remark at the strategy's \p line, unless it is null: nothing is \p done in \p program, because of \p why.
/// The remark names the program if it is one of several roles, since the line may have an effect in others.
inline void remarkUnused(mlir::ModuleOp program, mlir::Operation *line, llvm::StringRef done, llvm::StringRef why) {
  if (!line)
    return;
  // At its place and not on the operation, which is in the module around the roles: printing it would verify that, and
  // other threads are changing the other roles.
  mlir::InFlightDiagnostic remark = mlir::emitRemark(line->getLoc()) << "nothing is " << done;
  if (std::optional<llvm::StringRef> name = program.getSymName(); name && program->getParentOp())
    remark << " in the program '" << *name << "'";
  remark << ": " << why;
}

} // namespace bowline

#endif // BOWLINE_PASSES_LOCAL_COLLECTIVES_UNUSEDLINE_H
