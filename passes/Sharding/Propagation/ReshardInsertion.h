//===- ReshardInsertion.h - Reshards wherever producer and consumer differ
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_SHARDING_PROPAGATION_RESHARDINSERTION_H
#define BOWLINE_PASSES_SHARDING_PROPAGATION_RESHARDINSERTION_H

#include "passes/Analysis/ShardingState.h"
#include "passes/Sharding/Propagation/ReplicationWarnings.h"

namespace bowline {

/// Decides how each operation is computed on shards, from the shardings of its operands and results. Inserts
/// `dist.reshard` before operands and after results whose sharding differs. Afterwards `dist.shardings` of every
/// operation states the shardings in which it produces its results.
///
/// A partial sum over ranks is completed at once, with two exceptions. Gradients, losses and token counts are
/// accumulated over microbatches first, and completed where the accumulator is read. Partial sums that are only added
/// to other partial sums, or reduced further, are completed after that.
class ReshardInsertion {
public:
  /// Warns of gathers that leave at least \p largeBytes on each rank.
  ReshardInsertion(ShardingState &state, int64_t largeBytes) : state(state), warnings(state, largeBytes) {}
  void run();

private:
  void deferSums();
  std::optional<Axes> partialAxes(mlir::Value value, llvm::StringRef accumulator);
  void keepPartial(mlir::Value value, llvm::StringRef accumulator, const Axes &axes);

  Axes partsOf(mlir::Value value);
  void completeLate();
  bool takesParts(mlir::Operation *op);

  void visit(mlir::Operation *op);
  void visitWhole(mlir::Operation *op);
  void visitOperand(mlir::OpOperand &operand, const TensorSharding &required);
  void useOwnConstant(mlir::OpOperand &operand, const TensorSharding &required);
  mlir::Value reshard(mlir::Value value, const TensorSharding &to, mlir::Operation *user);
  void produce(mlir::OpResult result, const TensorSharding &produced);

  ShardingState &state;
  ReplicationWarnings warnings;
  /// The axes over which the result of a linear operation on partial sums is still to be summed.
  llvm::DenseMap<mlir::Value, Axes> sums;
  /// The sharding in which an operation produces its result. Users get the value's own sharding, by a reshard where the
  /// two differ.
  llvm::DenseMap<mlir::Value, TensorSharding> actual;
  /// The resharded value for each value and sharding.
  llvm::DenseMap<std::pair<mlir::Value, mlir::Attribute>, mlir::Value> reshards;
};

} // namespace bowline

#endif // BOWLINE_PASSES_SHARDING_PROPAGATION_RESHARDINSERTION_H
