//===- StrategyApplication.h - A strategy's choices become shardings of a module
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_SHARDING_ASSIGNMENT_STRATEGYAPPLICATION_H
#define BOWLINE_PASSES_SHARDING_ASSIGNMENT_STRATEGYAPPLICATION_H

#include "dialects/Graph/GraphOps.h"
#include "passes/Sharding/Assignment/TensorParallel.h"
#include "passes/Strategy/Strategy.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Support/GlobPattern.h"

namespace bowline {

/// Applies a strategy to a module: replaces the mesh, and sets `dist.sharding` on every parameter and on every argument
/// with a batch dimension. With sequence parallelism it also sets an open sharding in `dist.shardings` on every lookup
/// of embeddings, from which it spreads to the residual stream. Propagation derives all other shardings.
class StrategyApplication {
public:
  StrategyApplication(mlir::ModuleOp module, const Strategy &strategy) : module(module), strategy(strategy) {}

  /// Fails with a diagnostic that names the nearest valid choice, if a pattern matches no parameter or does not fit
  /// one, an axis does not divide the batch or the sequence, or ranks can neither divide nor share the key heads. Emits
  /// a remark for parameters that unexpectedly stay whole. The axes of a parameter's dimension need not divide it:
  /// Padding.h makes it larger.
  mlir::LogicalResult run();

  /// Returns whether a pattern matches the parameter's symbol or its key.
  static bool matches(const llvm::GlobPattern &glob, graph::ParamOp param) {
    return glob.match(param.getName()) || glob.match(param.getKey());
  }

private:
  void remarkLoneAxes();
  void replaceMesh();
  mlir::LogicalResult apply();
  mlir::LogicalResult shardParameters();
  void shardMirrors();
  mlir::LogicalResult shardByDefault(llvm::ArrayRef<graph::ParamOp> params);
  /// Gives fused projections a dimension for their parts; \p shardings loses those that cannot have one.
  void splitFused(llvm::SmallVectorImpl<std::pair<graph::ParamOp, TensorParallel::Sharding>> &shardings,
                  llvm::ArrayRef<graph::ParamOp> params, TensorParallel &tensorParallel);
  void shardParameter(graph::ParamOp param, const TensorParallel::Sharding &sharding);
  void remarkWhole(llvm::StringRef reason, llvm::ArrayRef<graph::ParamOp> whole);
  /// For each parameter that patterns match, the last one that does.
  using DeciderMap = llvm::DenseMap<mlir::Operation *, const Strategy::Pattern *>;
  mlir::LogicalResult applyPattern(const Strategy::Pattern &pattern, llvm::ArrayRef<graph::ParamOp> params,
                                   DeciderMap &deciders);
  mlir::LogicalResult checkDeciders(const DeciderMap &deciders);
  mlir::LogicalResult checkFit(const Strategy::Pattern &pattern, graph::ParamOp param);
  mlir::LogicalResult shardBatch(graph::FuncOp function);
  /// Returns whether nothing but numbers of heads is against so many ranks along the axis of tensor parallelism.
  bool allowsTensorRanks(int64_t ranks);
  mlir::LogicalResult shardSequences();
  mlir::LogicalResult shardSequence(graph::GatherOp gather);
  llvm::SmallVector<mlir::StringAttr> toAxes(llvm::ArrayRef<std::string> names);
  llvm::SmallVector<mlir::StringAttr> batchAxes();
  int64_t ranksOf(llvm::ArrayRef<mlir::StringAttr> axes) const;

  mlir::ModuleOp module;
  const Strategy &strategy;
  /// TensorParallel::Sharding::pieces of the key heads, if they are fewer than the ranks along the axis of tensor
  /// parallelism, which is divided then; else 0.
  int64_t keyPieces = 0;
};

} // namespace bowline

#endif // BOWLINE_PASSES_SHARDING_ASSIGNMENT_STRATEGYAPPLICATION_H
