//===- UniformValues.h - Which values are equal on all ranks along an axis
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_LOCAL_ZERO_UNIFORMVALUES_H
#define BOWLINE_PASSES_LOCAL_ZERO_UNIFORMVALUES_H

#include "dialects/Dist/DistOps.h"
#include "dialects/Graph/GraphOps.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/DenseSet.h"

namespace bowline {

/// Finds the values of a function on local tensors that are equal on all ranks along an axis. They are computed from
/// constants, variables of which ranks hold copies, arguments that the axis does not shard, and collectives whose
/// result is equal on all ranks. A rank can take its shard of such a value without communication.
class UniformValues {
public:
  UniformValues(graph::FuncOp function, mlir::StringAttr axis, const mlir::SymbolTable &symbols);

  bool contains(mlir::Value value) const { return uniform.contains(value); }

private:
  bool isUniform(mlir::Operation *op, const mlir::SymbolTable &symbols) const;

  mlir::StringAttr axis;
  llvm::DenseSet<mlir::Value> uniform;
};

/// Returns whether \p sharding, which may be null, shards a dimension along \p axis.
bool isShardedAlong(dist::ShardingAttr sharding, mlir::StringAttr axis);
/// Returns whether \p sharding, which may be null, is unreduced along \p axis: each rank holds a summand.
bool isSummedAlong(dist::ShardingAttr sharding, mlir::StringAttr axis);

} // namespace bowline

#endif // BOWLINE_PASSES_LOCAL_ZERO_UNIFORMVALUES_H
