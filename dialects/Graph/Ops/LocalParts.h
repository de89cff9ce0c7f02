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

/// Subtracts from global indices the first one of this rank's shard along `axes`, which has `part` indices. The result
/// of an index below 0 may be any number that is not in the part.
Value shiftedToPart(LocalContext &context, mlir::ImplicitLocOpBuilder &builder, Value indices, LocalContext::Axes axes,
                    int64_t part);

/// `index`, or `last` where it is larger.
Value atMost(mlir::ImplicitLocOpBuilder &builder, Value index, int64_t last);

/// `index`, or the nearest number in [0, last].
Value withinZeroAnd(mlir::ImplicitLocOpBuilder &builder, Value index, int64_t last);

/// `value` where 0 <= index < part, `other` elsewhere; all of one shape.
Value whereOwn(mlir::ImplicitLocOpBuilder &builder, Value index, int64_t part, Value value, Value other);

/// Makes of an operation that looks up rows of a whole table one for the shard along `axes`, which has `part` rows:
/// `indices`, an operand of it, count from the shard's first row, and rows that this rank does not have are zero, so
/// that the results of all ranks add up. With `inRange`, no index is outside of the whole table; without, such an index
/// stays as it is, for the check before the kernel.
void localizeRowsOf(mlir::Operation *op, mlir::OpOperand &indices, bool inRange, LocalContext &context,
                    LocalContext::Axes axes, int64_t part);

} // namespace bowline::graph

#endif // BOWLINE_DIALECTS_GRAPH_OPS_LOCALPARTS_H
