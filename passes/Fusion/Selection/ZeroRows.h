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

/// A count behind which all rows of `value` are zeros; null where none is known. Kernels of which the registry says so
/// write them, graph.valid_rows does, and elementwise operations on zeros alone may.
mlir::Value findZeroRowCount(mlir::Value value);

} // namespace bowline

#endif // BOWLINE_PASSES_FUSION_SELECTION_ZEROROWS_H
