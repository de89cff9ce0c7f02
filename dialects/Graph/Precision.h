//===- Precision.h - Precision of operations in programs of a narrower type
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_DIALECTS_GRAPH_PRECISION_H
#define BOWLINE_DIALECTS_GRAPH_PRECISION_H

#include "mlir/IR/Operation.h"

namespace bowline::graph {

/// How an operation on f32 changes its types when `lower-precision` makes the program compute in a narrower type.
enum class Precision {
  Narrow,   ///< operands and results become narrow
  Follow,   ///< moves elements: the result becomes narrow if an operand is
  Promote,  ///< as Follow, but stays in f32 if another operand is f32 and not a parameter or constant
  Tolerate, ///< accepts narrow operands; result types do not change
  Keep,     ///< neither operand types nor result types change
};

/// The precision that the operation states, or that follows from its traits.
Precision precisionOf(mlir::Operation *op);

/// The default of PrecisionModel::precision: Promote for elementwise operations, Keep for all others.
Precision precisionByTraits(mlir::Operation *op);

} // namespace bowline::graph

#endif // BOWLINE_DIALECTS_GRAPH_PRECISION_H
