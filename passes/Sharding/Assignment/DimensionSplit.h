//===- DimensionSplit.h - One dimension is seen as two
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_SHARDING_ASSIGNMENT_DIMENSIONSPLIT_H
#define BOWLINE_PASSES_SHARDING_ASSIGNMENT_DIMENSIONSPLIT_H

#include "passes/Analysis/DimensionClasses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallBitVector.h"

namespace bowline {

/// Splits a dimension that consists of equal parts side by side, such as the output of a projection to queries, keys
/// and values, into two dimensions [parts, size / parts], so that each part can be sharded. All dimensions of the same
/// class (DimensionClasses.h) are split too. No element moves, and results do not change. Slices of a part, and pads
/// and concatenations that put parts side by side, get a reshape. A variable keeps its old shape as
/// `dist.global_shape` and gets the new shape as `dist.view`.
class DimensionSplit {
public:
  /// repeatFreeValues must have been called for the module before.
  explicit DimensionSplit(mlir::ModuleOp module) : module(module), classes(module) {}

  /// Requests the split of a dimension into \p parts parts, a number that divides its size. Call it before run().
  void ask(llvm::StringRef variable, int64_t dim, int64_t parts);
  /// Forbids a split of any dimension of the variable. Call it before run().
  void keep(llvm::StringRef variable, int64_t rank);
  /// Performs all requested splits, except of dimensions that `keep` forbids or that an operation cannot split.
  void run();
  /// Returns, after run(), whether the dimension was split. `dim` is its index before the split, as passed to ask().
  bool isSplit(llvm::StringRef variable, int64_t dim) const;

private:
  using Class = DimensionClasses::Class;
  struct Rewrite {
    mlir::Operation *op;
    llvm::SmallVector<graph::DimSplits> operands, results;
  };

  Rewrite rewriteOf(mlir::Operation *op, llvm::function_ref<graph::DimSplit(Class)> splitOf);
  void collect(mlir::Operation *op, std::vector<Rewrite> &rewrites);
  void findObstacles();
  bool canSplit(mlir::Operation *op, Class wanted, const graph::DimSplit &request);
  void rewrite(const Rewrite &rewrite);
  void splitVariables();

  mlir::ModuleOp module;
  DimensionClasses classes;
  llvm::MapVector<Class, graph::DimSplit> requests;
  llvm::SmallSetVector<Class, 4> obstructed;
  llvm::StringMap<llvm::SmallBitVector> split;
};

} // namespace bowline

#endif // BOWLINE_PASSES_SHARDING_ASSIGNMENT_DIMENSIONSPLIT_H
