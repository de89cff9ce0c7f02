//===- ZeroRows.h - Which rows are zeros
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_FUSION_SELECTION_ZEROROWS_H
#define BOWLINE_PASSES_FUSION_SELECTION_ZEROROWS_H

#include "mlir/IR/Value.h"

namespace bowline {

/// A count from which on all rows of `value` are known to be zero; null if there is none. Such values come from kernels
/// that the registry marks so, from graph.valid_rows, and from elementwise operations on rows of zeros.
mlir::Value findZeroRowCount(mlir::Value value);

} // namespace bowline

#endif // BOWLINE_PASSES_FUSION_SELECTION_ZEROROWS_H
