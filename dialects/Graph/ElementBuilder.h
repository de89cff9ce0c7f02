//===- ElementBuilder.h - How an operation describes one element of its result
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_DIALECTS_GRAPH_ELEMENTBUILDER_H
#define BOWLINE_DIALECTS_GRAPH_ELEMENTBUILDER_H

#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/Value.h"

namespace bowline::graph {

/// An opaque handle to the expression of one tensor element, which only its builder can interpret. Null means failure.
struct Element {
  const void *handle = nullptr;
  explicit operator bool() const { return handle != nullptr; }
};

/// The condition `low <= index < high`.
struct IndexBound {
  mlir::AffineExpr index;
  int64_t low, high;
  bool operator==(const IndexBound &) const = default;
};
/// The conjunction of its bounds: a box in the index space.
using IndexBox = llvm::SmallVector<IndexBound>;

/// Builds the expressions of generated code for `FusionModel::elementAt`. An operation describes an element of its
/// result in terms of elements of its operands; the code generator decides how to compute each of them. An index has
/// one affine expression per dimension, over loop variables; the builder simplifies the expressions that it makes.
/// Type parameters are the types of elements in memory.
class ElementBuilder {
public:
  virtual ~ElementBuilder() = default;

  using Index = llvm::ArrayRef<mlir::AffineExpr>;

  /// Element \p index of \p value, an operand.
  virtual Element at(mlir::Value value, Index index) = 0;

  /// \p expr + \p amount.
  virtual mlir::AffineExpr plus(mlir::AffineExpr expr, int64_t amount) = 0;
  /// The index in \p to of the element that has \p index in \p from: row-major shapes of equally many elements.
  virtual llvm::SmallVector<mlir::AffineExpr> reshape(Index index, llvm::ArrayRef<int64_t> from,
                                                      llvm::ArrayRef<int64_t> to) = 0;

  /// The value of the expression \p index itself, converted to \p type.
  virtual Element number(mlir::Type type, mlir::AffineExpr index) = 0;
  /// Selects elements[i] for the i-th box whose conditions hold; zero if none do. The boxes must not overlap.
  virtual Element choose(mlir::Type type, llvm::ArrayRef<IndexBox> boxes, llvm::ArrayRef<Element> elements) = 0;
  /// The sum (\p isSum) or maximum of \p input over the ascending \p dims; \p index holds the indices of the other
  /// dimensions. With \p ignoresNan the maximum may be any value if an element is NaN.
  virtual Element reduce(mlir::Value input, llvm::ArrayRef<int64_t> dims, Index index, bool isSum, bool ignoresNan) = 0;
  /// Applies \p op, an elementwise operation of `arith` or `math` with one result, to its operands at \p index. Returns
  /// null after a diagnostic for any other operation.
  virtual Element compute(mlir::Operation *op, Index index) = 0;
};

} // namespace bowline::graph

#endif // BOWLINE_DIALECTS_GRAPH_ELEMENTBUILDER_H
