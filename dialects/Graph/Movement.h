//===- Movement.h - Operations that move elements, and compute nothing
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_DIALECTS_GRAPH_MOVEMENT_H
#define BOWLINE_DIALECTS_GRAPH_MOVEMENT_H

#include "mlir/IR/Operation.h"

namespace bowline::graph {

/// The operand of which every element of the only result is an element; null where the operation does something else.
/// With `inOrder`, of two elements of the result the earlier one is also the earlier one of the operand.
mlir::Value movedBy(mlir::Operation *op, bool inOrder = false);

/// Returns whether all elements are in [0, end) because callers keep them so: they are elements of an argument that has
/// a limit, moved at most. `movedByOther` is movedBy for operations of other dialects.
bool areKeptBelow(mlir::Value index, int64_t end,
                  llvm::function_ref<mlir::Value(mlir::Operation *)> movedByOther = nullptr);

} // namespace bowline::graph

#endif // BOWLINE_DIALECTS_GRAPH_MOVEMENT_H
