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

/// The types of an operation on f32 in a program that computes in a narrower type.
enum class Precision {
  Narrow,   ///< computes in the narrow type, whatever the types of its operands
  Follow,   ///< moves elements: is narrow where an operand is narrow already
  Promote,  ///< as Follow, but in f32 where another operand is f32 and no parameter or constant
  Tolerate, ///< takes narrow operands, and gives the same types as before
  Keep,     ///< takes and gives the same types as before
};

/// The precision that the operation states, or that follows from its traits.
Precision precisionOf(mlir::Operation *op);

/// The default of the interface PrecisionModel: elementwise operations promote, others keep their types.
Precision precisionByTraits(mlir::Operation *op);

} // namespace bowline::graph

#endif // BOWLINE_DIALECTS_GRAPH_PRECISION_H
