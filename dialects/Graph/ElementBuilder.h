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

/// The value of one tensor element, as the builder that made it represents it; false after a diagnostic.
struct Element {
  const void *handle = nullptr;
  explicit operator bool() const { return handle != nullptr; }
};

/// `low <= index < high`
struct IndexBound {
  mlir::AffineExpr index;
  int64_t low, high;
  bool operator==(const IndexBound &) const = default;
};
/// All bounds hold.
using IndexBox = llvm::SmallVector<IndexBound>;

/// Builds the expressions that generated code consists of, for `FusionModel::elementAt`: an operation describes an
/// element of its result by elements of its operands, and the code generator decides how to compute each. An index has
/// an expression for each dimension, over the dimensions of loops; the builder simplifies the expressions that it
/// makes. Types are of elements in memory.
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

  /// The number \p index.
  virtual Element number(mlir::Type type, mlir::AffineExpr index) = 0;
  /// The one of \p elements, one for each of \p boxes, whose box holds the point; zero where there is none.
  virtual Element choose(mlir::Type type, llvm::ArrayRef<IndexBox> boxes, llvm::ArrayRef<Element> elements) = 0;
  /// The sum, or else the maximum, of the elements of \p input along \p dims, ascending; \p index is that of the other
  /// dimensions. With \p ignoresNan the maximum does not matter where an element is NaN.
  virtual Element reduce(mlir::Value input, llvm::ArrayRef<int64_t> dims, Index index, bool isSum, bool ignoresNan) = 0;
  /// The only result of \p op, an elementwise operation of `arith` or `math`, of its operands at the same index. Others
  /// are diagnosed.
  virtual Element compute(mlir::Operation *op, Index index) = 0;
};

} // namespace bowline::graph

#endif // BOWLINE_DIALECTS_GRAPH_ELEMENTBUILDER_H
