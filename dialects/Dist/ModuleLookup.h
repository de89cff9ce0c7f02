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

/// The first \p OpTy of the outermost module around \p op, or \p op itself, that has one; else null. The outermost
/// modules hold little besides the programs of ranks, which have thousands of operations.
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
