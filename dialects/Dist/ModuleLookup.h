//===- ModuleLookup.h - Lookup of operations in the modules around an operation
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_DIALECTS_DIST_MODULELOOKUP_H
#define BOWLINE_DIALECTS_DIST_MODULELOOKUP_H

#include "mlir/IR/BuiltinOps.h"

namespace bowline::dist {

/// Searches the modules that are or contain \p op, outermost first, and returns the first \p OpTy directly in one of
/// them, or null. Starting outside is fast: outer modules are short, and programs of ranks have thousands of ops.
template <typename OpTy> OpTy firstAround(mlir::Operation *op) {
  if (!op)
    return {};
  if (OpTy found = firstAround<OpTy>(op->getParentOp()))
    return found;
  if (auto module = llvm::dyn_cast<mlir::ModuleOp>(op))
    for (OpTy found : module.getOps<OpTy>())
      return found;
  return {};
}

} // namespace bowline::dist

#endif // BOWLINE_DIALECTS_DIST_MODULELOOKUP_H
