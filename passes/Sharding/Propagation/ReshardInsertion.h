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

/// Decides how each operation is computed in parts, from the cuts of its operands and results, and inserts
/// `dist.reshard` in front of operands and behind results that are cut otherwise. Afterwards every operation has in
/// `dist.shardings` what it produces.
///
/// A result that is a sum of parts is completed at once, except on its way into an accumulator: gradients, losses and
/// token counts are summed over microbatches first, and completed where they are read. Parts
/// that are only added to parts, or summed further, are completed after that.
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
  void visitOperand(mlir::OpOperand &operand, const Cut &required);
  void useOwnConstant(mlir::OpOperand &operand, const Cut &required);
  mlir::Value reshard(mlir::Value value, const Cut &to, mlir::Operation *user);
  void produce(mlir::OpResult result, const Cut &produced);

  ShardingState &state;
  ReplicationWarnings warnings;
  /// Results of linear operations on parts: the axes over which they are sums.
  llvm::DenseMap<mlir::Value, Axes> sums;
  /// What an operation gives; its users get the cut, by a reshard where the two differ.
  llvm::DenseMap<mlir::Value, Cut> actual;
  /// By value and sharding.
  llvm::DenseMap<std::pair<mlir::Value, mlir::Attribute>, mlir::Value> reshards;
};

} // namespace bowline

#endif // BOWLINE_PASSES_SHARDING_PROPAGATION_RESHARDINSERTION_H
