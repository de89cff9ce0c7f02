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

/// Returns the operand from which the operation moves every element of its only result; null for any other operation.
/// With `inOrder`, only operations count that keep the elements in the operand's row-major order.
mlir::Value movedBy(mlir::Operation *op, bool inOrder = false);

/// Returns whether callers guarantee that all elements of `index` are in [0, end): it is an argument with a limit, or
/// consists of moved elements of one. `movedByOther` plays the role of movedBy for operations of other dialects.
bool areKeptBelow(mlir::Value index, int64_t end,
                  llvm::function_ref<mlir::Value(mlir::Operation *)> movedByOther = nullptr);

} // namespace bowline::graph

#endif // BOWLINE_DIALECTS_GRAPH_MOVEMENT_H
