//===- FunctionSharding.h - A function works on shards of the variables that ranks divide
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_LOCAL_ZERO_FUNCTIONSHARDING_H
#define BOWLINE_PASSES_LOCAL_ZERO_FUNCTIONSHARDING_H

#include "passes/Local/Zero/FlatShards.h"
#include "passes/Local/Zero/UniformValues.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"

namespace bowline {

/// A variable that is being replaced by flat shards, one per rank.
struct ShardedVariable {
  mlir::RankedTensorType whole;
  /// Whether it is an accumulator of which each rank held a summand; its shards hold complete sums.
  bool isSummand = false;
  bool isParameter = false;
  /// Whether its padding is always zero, so that a sum over the shard is a sum over its elements.
  bool isZeroPadded = false;
};

/// Rewrites one function on local tensors for variables that become flat shards:
///
///   * Elementwise operations on shards compute shards. So do operations that compute their other operands, if these
///     are equal on all ranks: constants, scalars, slices of whole variables.
///   * The all-reduce that completes a gradient becomes a reduce-scatter; along its other axes shards are all-reduced.
///   * The same holds for a gradient that goes to another pipeline stage.
///   * A sum of all elements becomes a sum over the shard, then over the ranks.
///   * A gradient is reduce-scattered as soon as it is computed, before it is added to an accumulator that is a
///     shard.
///   * Shards are gathered where an operation needs the whole tensor: a new value as soon as it is computed; a
///     parameter before its use, and again before its next use if another parameter is used in between.
///
/// A value that is rounded before its use is rounded first and then gathered: the same result from fewer bytes.
class FunctionSharding {
public:
  using Variables = llvm::StringMap<ShardedVariable>;

  /// The attributes of variables are still those of whole tensors. \p prefetch goes onto the gathers of parameters.
  FunctionSharding(graph::FuncOp function, const FlatShards &shards, const mlir::SymbolTable &symbols,
                   const Variables &variables, int64_t prefetch);

  /// Fails with a diagnostic at an operation that uses a summand and cannot be computed on shards.
  mlir::LogicalResult run();

private:
  // Choose the values that become shards.
  mlir::LogicalResult findShards();
  mlir::LogicalResult classify(mlir::Operation *op);
  bool isElementwise(mlir::Operation *op) const;
  bool isGradientSum(dist::AllReduceOp all) const;
  void findWanted();
  const ShardedVariable *lookup(llvm::StringRef variable) const;
  bool isSummandAccumulator(mlir::Operation *op) const;

  // Compute the shards.
  void rewrite(mlir::Operation *op);
  void rewriteWrite(graph::WriteOp write);
  void rewriteSummand(mlir::Operation *op);
  void rewriteElementwise(mlir::Operation *op);
  void rewriteGradientSum(dist::AllReduceOp all);
  bool rewriteSum(mlir::Operation *sum);
  mlir::Value shardOf(mlir::Value whole);
  mlir::Value summandShardOf(mlir::Value summand, llvm::StringRef why);
  mlir::Value splat(mlir::DenseElementsAttr value, mlir::Location location);
  void setShard(mlir::Value whole, mlir::Value shard, bool zeroPadded);
  bool keepsZeros(mlir::Operation *op) const;

  // Gather shards where whole tensors are needed.
  struct Demand {
    mlir::Value whole;
    mlir::OpOperand *operand;
    int64_t position; ///< of the operand's operation in the original function
  };
  void gatherAll();
  void gatherParameter(mlir::Value whole, llvm::ArrayRef<Demand> demands, llvm::ArrayRef<Demand> ofAll);
  void gather(mlir::Value whole, llvm::ArrayRef<Demand> demands, int64_t repetition);
  /// The parameter whose value, or whose value rounded, \p whole is; empty if it is neither.
  llvm::StringRef parameterOf(mlir::Value whole) const;

  graph::FuncOp function;
  const FlatShards &shards;
  const mlir::SymbolTable &symbols;
  const Variables &variables;
  int64_t prefetch;
  UniformValues uniform;

  /// Values of the original function: gradients that are read from accumulators of summands, and sums of them; those of
  /// these whose sums over ranks are known in shards only; other values that are known in shards; and values of which
  /// shards are needed to compute those.
  llvm::DenseSet<mlir::Value> gradients, summands, divided, wanted;
  llvm::DenseMap<mlir::Value, mlir::Value> shardOfValue, shardOfSummand;
  llvm::DenseSet<mlir::Value> zeroPadded; ///< shards whose padding is zero
  llvm::MapVector<mlir::Value, llvm::SmallVector<Demand>> demands;
  llvm::SetVector<mlir::Operation *> replaced;
};

} // namespace bowline

#endif // BOWLINE_PASSES_LOCAL_ZERO_FUNCTIONSHARDING_H
