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

/// Remarks at \p line that nothing is \p done, and \p why; in a pipeline also in the program of which ranks, as others
/// may have some. Nothing where the strategy has no such line.
inline void remarkUnused(mlir::Operation *line, llvm::StringRef done, llvm::StringRef why) {
  if (!line)
    return;
  auto program = line->getParentOfType<mlir::ModuleOp>();
  mlir::InFlightDiagnostic remark = line->emitRemark("nothing is ") << done;
  if (program->getParentOfType<mlir::ModuleOp>())
    remark << " in the program '" << program.getSymName().value_or("") << "'";
  remark << ": " << why;
}

} // namespace bowline

#endif // BOWLINE_PASSES_LOCAL_COLLECTIVES_UNUSEDLINE_H
