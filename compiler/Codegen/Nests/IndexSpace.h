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

/// A set of dimensions of an IndexSpace: bit i stands for dimension i.
using DimSet = uint64_t;

inline DimSet dimBit(unsigned dim) { return DimSet(1) << dim; }

/// The dimensions of one kernel's loops, with their sizes, and index expressions that are simplified with the ranges
/// which the sizes imply. Upstream's affine simplification uses no ranges: it would keep the division in `(4 i + j)
/// floordiv 4` for j in [0, 4). Expressions are canonical: equal expressions have equal pointers.
class IndexSpace {
public:
  static constexpr unsigned kMaxDims = 64;

  explicit IndexSpace(mlir::MLIRContext *context) : context(context) {}

  /// Adds a dimension that runs over [0, size) and returns its number.
  unsigned addDim(int64_t size);

  /// Returns a dimension of this size for a reduction, other than those in `used`. Reductions over equal sizes get the
  /// same dimension, so that they can share a loop.
  unsigned reductionDim(int64_t size, DimSet used);

  int64_t size(unsigned dim) const { return sizes[dim]; }

  /// Returns whether more dimensions were added than a DimSet can hold. The expressions are then unusable.
  bool isExhausted() const { return exhausted; }

  /// Returns the index along `dim`, which is the constant zero if the size is one.
  mlir::AffineExpr dim(unsigned dim) const;
  mlir::AffineExpr constant(int64_t value) const { return mlir::getAffineConstantExpr(value, context); }

  mlir::AffineExpr add(mlir::AffineExpr lhs, mlir::AffineExpr rhs) const;
  mlir::AffineExpr scale(mlir::AffineExpr expr, int64_t factor) const;
  mlir::AffineExpr floorDiv(mlir::AffineExpr expr, int64_t divisor) const;
  mlir::AffineExpr mod(mlir::AffineExpr expr, int64_t divisor) const;

  /// Returns the row-major position of `index` in `shape`.
  mlir::AffineExpr linearize(llvm::ArrayRef<mlir::AffineExpr> index, llvm::ArrayRef<int64_t> shape) const;

  /// Returns the index in shape `to` of the element with `index` in shape `from`. Both shapes are row-major and have
  /// equally many elements. Divides only where dimensions are really regrouped.
  llvm::SmallVector<mlir::AffineExpr> reshape(llvm::ArrayRef<mlir::AffineExpr> index, llvm::ArrayRef<int64_t> from,
                                              llvm::ArrayRef<int64_t> to) const;

  /// Returns the least and the greatest value of `expr`.
  std::pair<int64_t, int64_t> range(mlir::AffineExpr expr) const;

  static DimSet dimsOf(mlir::AffineExpr expr);

  /// Returns the constant factor of `dim` in `expr`; nothing if `expr` is not linear in `dim`.
  static std::optional<int64_t> coefficient(mlir::AffineExpr expr, unsigned dim);

  /// Returns `expr` with each dimension in `replacements` replaced by its expression.
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
