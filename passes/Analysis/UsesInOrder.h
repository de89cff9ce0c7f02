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

/// The uses of \p value by the places of their operations in the program, and those of one operation by the numbers of
/// their operands. MLIR keeps uses in an order that depends on how the program came about, and not on its text, so that
/// a pass whose result depends on that one gives another program after printing and parsing.
llvm::SmallVector<mlir::OpOperand *> usesInOrder(mlir::Value value);

} // namespace bowline

#endif // BOWLINE_PASSES_ANALYSIS_USESINORDER_H
