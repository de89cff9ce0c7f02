//===- UsesInOrder.h - The uses of a value as the program has them
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_ANALYSIS_USESINORDER_H
#define BOWLINE_PASSES_ANALYSIS_USESINORDER_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"

namespace bowline {

/// The uses of \p value, sorted by the position of the user in the program, then by operand number. The order of MLIR's
/// use lists depends on the history of the IR and is lost by printing and parsing. A pass whose result depends on it
/// would give another program for the same text.
llvm::SmallVector<mlir::OpOperand *> usesInOrder(mlir::Value value);

} // namespace bowline

#endif // BOWLINE_PASSES_ANALYSIS_USESINORDER_H
