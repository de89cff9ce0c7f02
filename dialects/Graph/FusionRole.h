//===- FusionRole.h - How operations become generated code
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_DIALECTS_GRAPH_FUSIONROLE_H
#define BOWLINE_DIALECTS_GRAPH_FUSIONROLE_H

#include "mlir/IR/Operation.h"

namespace bowline::graph {

/// The role of an operation in a fusion group, whose operations become one kernel.
enum class FusionRole {
  None,        ///< no code is generated for it
  Alone,       ///< generated code, in a kernel that nothing else joins
  Elementwise, ///< each element of the results depends on the operands' elements at the same index only
  Row,         ///< each row of the domain depends on the same row of the operands only, or is reduced to one value
  BlockSum,    ///< the first stage of a sum over rows: [blocks, rows, columns] to [blocks, columns]
  Repeated,    ///< computed again in every kernel that reads it: a constant, or few elements repeated
  Absorbed,    ///< becomes part of its only reader's loads: zero padding of an elementwise operand, rows as blocks
};

/// The role that the operation states, or that follows from its traits.
FusionRole fusionRoleOf(mlir::Operation *op);

/// Returns whether `op` can be part of a contraction's epilogue, which is computed on one tile of the result at a time:
/// each element of its result comes from the same element of its operands (elementwise), from the same row or column,
/// or from one value (repeated). The passes that form epilogues and the generators of their code share this one rule;
/// each decides itself which shapes and element types fit.
bool canBeInEpilogue(mlir::Operation *op);

/// The shape over whose rows the operation iterates. Operations in one group have equal domains, or the domain of one
/// has one element per row of the other's.
llvm::ArrayRef<int64_t> fusionDomainOf(mlir::Operation *op);

/// The defaults of the interface FusionModel.
FusionRole fusionRoleByTraits(mlir::Operation *op);
llvm::ArrayRef<int64_t> fusionDomainByTraits(mlir::Operation *op);

// Attributes by which a decomposition tells the code generator which cases or errors do not matter.

/// Set on a maximum that may return any value if an element is NaN.
inline constexpr llvm::StringLiteral kIgnoresNan = "ignores_nan";
/// Set on a math.exp whose argument is never positive, so that the result may be wrong for positive arguments.
inline constexpr llvm::StringLiteral kNeverAboveZero = "never_above_zero";
/// Set on a math.erf to whose result 1 is added, so that only the error relative to 1 matters.
inline constexpr llvm::StringLiteral kBesideOne = "beside_one";

} // namespace bowline::graph

#endif // BOWLINE_DIALECTS_GRAPH_FUSIONROLE_H
