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

/// Splits a dimension of several equal parts side by side, as of a projection to queries, keys and values, into two
/// dimensions [parts, size / parts], with all dimensions of its class, so that all parts can be sharded alike. No
/// element moves, and the program computes the same; slices that take a part, pads and concatenations that put parts
/// side by side get a reshape. A variable keeps its former shape as `dist.global_shape` and has the new one as
/// `dist.view`.
class DimensionSplit {
public:
  /// repeatFreeValues must have been called for the module before.
  explicit DimensionSplit(mlir::ModuleOp module) : module(module), classes(module) {}

  /// Asks, before run, that a dimension be split into \p parts parts, a number that divides its size.
  void ask(llvm::StringRef variable, int64_t dim, int64_t parts);
  /// Says, before run, that all dimensions of the variable stay as they are.
  void keep(llvm::StringRef variable, int64_t rank);
  /// Splits all that was asked for, but for dimensions that must stay, or that an operation needs as they are.
  void run();
  /// Returns, after run, whether the dimension is split; `dim` is the number that ask got.
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
