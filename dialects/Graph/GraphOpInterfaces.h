//===- GraphOpInterfaces.h - Facts that operations state for algorithms
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_DIALECTS_GRAPH_GRAPHOPINTERFACES_H
#define BOWLINE_DIALECTS_GRAPH_GRAPHOPINTERFACES_H

#include "dialects/Graph/Arithmetic.h"
#include "dialects/Graph/DimSplit.h"
#include "dialects/Graph/ElementBuilder.h"
#include "dialects/Graph/FactorRule.h"
#include "dialects/Graph/FusionRole.h"
#include "dialects/Graph/HostTensor.h"
#include "dialects/Graph/KernelCall.h"
#include "dialects/Graph/LocalContext.h"
#include "dialects/Graph/PaddingContext.h"
#include "dialects/Graph/Precision.h"
#include "dialects/Program/ProgramEnums.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"

namespace bowline::graph {

/// The number of bytes of all tensor operands and results together.
double bytesTouched(mlir::Operation *op);
/// Bytes of all elements of a tensor; 0 for other types.
double byteCount(mlir::Type type);

/// The cost of recomputing results, relative to keeping them in memory.
enum class RepeatCost {
  Full,       ///< as much time as the first computation
  Activation, ///< cheap: an elementwise function of one operand, which the derivative keeps anyway
  Free,       ///< negligible time, and less memory than keeping the results
};

/// The cost that the operation states, or that follows from its traits.
RepeatCost repeatCostOf(mlir::Operation *op);
RepeatCost repeatCostByTraits(mlir::Operation *op);

/// Returns whether the operation only repeats its single operand along new dimensions, as graph.broadcast does.
bool isRepetition(mlir::Operation *op);
/// Returns the dimensions of the result that the operand of such an operation has; the others are new.
llvm::SmallVector<int64_t> repeatedDims(mlir::Operation *repetition);

/// The trait of an operation that computes nothing: its result has the bytes of its only operand.
template <typename ConcreteType> class View : public mlir::OpTrait::TraitBase<ConcreteType, View> {
  static mlir::LogicalResult verifyTrait(mlir::Operation *op) {
    static_assert(ConcreteType::template hasTrait<mlir::OpTrait::OneOperand>() &&
                      ConcreteType::template hasTrait<mlir::OpTrait::OneResult>(),
                  "a view is of one operand, as one result");
    return mlir::success();
  }
};

/// The trait of an operation that sums products of the operands' elements. It does much arithmetic per element and has
/// its own kernel.
template <typename ConcreteType> class Contraction : public mlir::OpTrait::TraitBase<ConcreteType, Contraction> {};

inline bool isView(mlir::Operation *op) { return op->hasTrait<View>(); }
inline bool isContraction(mlir::Operation *op) { return op->hasTrait<Contraction>(); }

} // namespace bowline::graph

#include "dialects/Graph/GraphOpInterfaces.h.inc"

#endif // BOWLINE_DIALECTS_GRAPH_GRAPHOPINTERFACES_H
