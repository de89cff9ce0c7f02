//===- IndexSpace.h - Loop dimensions and index expressions over them
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_CODEGEN_NESTS_INDEXSPACE_H
#define BOWLINE_COMPILER_CODEGEN_NESTS_INDEXSPACE_H

#include "mlir/IR/AffineExpr.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

namespace bowline::codegen {

/// A set of dimensions of an IndexSpace, one bit each.
using DimSet = uint64_t;

inline DimSet dimBit(unsigned dim) { return DimSet(1) << dim; }

/// The dimensions that loops of one kernel run over, with their sizes, and index expressions simplified by the ranges
/// that sizes imply: upstream's affine simplification knows no ranges, so that `(4 i + j) floordiv 4` would keep its
/// division for j in [0, 4). Expressions built here are canonical: equal expressions are equal as pointers.
class IndexSpace {
public:
  static constexpr unsigned kMaxDims = 64;

  explicit IndexSpace(mlir::MLIRContext *context) : context(context) {}

  /// A new dimension, running over [0, size).
  unsigned addDim(int64_t size);

  /// A dimension of a reduction: one that is not in `used`. Reductions over equal extents get equal dimensions, so that
  /// they can share a loop.
  unsigned reductionDim(int64_t size, DimSet used);

  int64_t size(unsigned dim) const { return sizes[dim]; }

  /// Whether more dimensions were added than a DimSet holds; expressions that were built are unusable then.
  bool isExhausted() const { return exhausted; }

  /// The index along `dim`: zero where its size is one.
  mlir::AffineExpr dim(unsigned dim) const;
  mlir::AffineExpr constant(int64_t value) const { return mlir::getAffineConstantExpr(value, context); }

  mlir::AffineExpr add(mlir::AffineExpr lhs, mlir::AffineExpr rhs) const;
  mlir::AffineExpr scale(mlir::AffineExpr expr, int64_t factor) const;
  mlir::AffineExpr floorDiv(mlir::AffineExpr expr, int64_t divisor) const;
  mlir::AffineExpr mod(mlir::AffineExpr expr, int64_t divisor) const;

  /// Row-major position of `index` in `shape`.
  mlir::AffineExpr linearize(llvm::ArrayRef<mlir::AffineExpr> index, llvm::ArrayRef<int64_t> shape) const;

  /// The index in `to` of the element that has `index` in `from`, both row-major with equally many elements. Divides
  /// only where dimensions of both are really regrouped.
  llvm::SmallVector<mlir::AffineExpr> reshape(llvm::ArrayRef<mlir::AffineExpr> index, llvm::ArrayRef<int64_t> from,
                                              llvm::ArrayRef<int64_t> to) const;

  /// Least and greatest value.
  std::pair<int64_t, int64_t> range(mlir::AffineExpr expr) const;

  static DimSet dimsOf(mlir::AffineExpr expr);

  /// The constant factor of `dim` in `expr`; none where `expr` is not linear in it.
  static std::optional<int64_t> coefficient(mlir::AffineExpr expr, unsigned dim);

  /// `expr` with each dimension in `replacements` replaced.
  mlir::AffineExpr replace(mlir::AffineExpr expr,
                           const llvm::SmallDenseMap<unsigned, mlir::AffineExpr> &replacements) const;

private:
  mlir::MLIRContext *context;
  llvm::SmallVector<int64_t> sizes;
  llvm::DenseMap<int64_t, llvm::SmallVector<unsigned>> reductionDims;
  bool exhausted = false;
};

} // namespace bowline::codegen

#endif // BOWLINE_COMPILER_CODEGEN_NESTS_INDEXSPACE_H
