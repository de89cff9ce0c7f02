//===- LocalParts.h - Indices of a rank's part
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_DIALECTS_GRAPH_OPS_LOCALPARTS_H
#define BOWLINE_DIALECTS_GRAPH_OPS_LOCALPARTS_H

#include "dialects/Graph/Ops/OpSupport.h"

namespace bowline::graph {

/// Converts global indices to indices in this rank's shard along `axes`, which has `part` elements: subtracts the
/// shard's first index. A negative index becomes some number outside of [0, part).
Value shiftedToPart(LocalContext &context, mlir::ImplicitLocOpBuilder &builder, Value indices, LocalContext::Axes axes,
                    int64_t part);

/// The elementwise minimum of `index` and `last`.
Value atMost(mlir::ImplicitLocOpBuilder &builder, Value index, int64_t last);

/// `index`, clamped to [0, last] element by element.
Value withinZeroAnd(mlir::ImplicitLocOpBuilder &builder, Value index, int64_t last);

/// `value` where 0 <= index < part, `other` elsewhere; all of one shape.
Value whereOwn(mlir::ImplicitLocOpBuilder &builder, Value index, int64_t part, Value value, Value other);

/// Rewrites an operation that looks up rows of a whole table to look them up in this rank's shard along `axes`, of
/// `part` rows. Its operand `indices` then counts from the shard's first row, and rows of other shards become zero, so
/// that the ranks' results can be summed. `inRange` promises that no index is outside of the whole table. Otherwise
/// an index out of range stays out of range, for the check before the kernel.
void localizeRowsOf(mlir::Operation *op, mlir::OpOperand &indices, bool inRange, LocalContext &context,
                    LocalContext::Axes axes, int64_t part);

} // namespace bowline::graph

#endif // BOWLINE_DIALECTS_GRAPH_OPS_LOCALPARTS_H
