//===- ReplicationWarnings.h - Large tensors that every rank gets whole
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_SHARDING_PROPAGATION_REPLICATIONWARNINGS_H
#define BOWLINE_PASSES_SHARDING_PROPAGATION_REPLICATIONWARNINGS_H

#include "passes/Analysis/ShardingState.h"
#include "llvm/ADT/MapVector.h"

namespace bowline {

/// Warns if conflicting choices of the strategy make ranks gather a large sharded tensor. A warning names the tensor,
/// the cause of its sharding, and the operation that needs the axis elsewhere or the dimension whole, once per such
/// pair. Gathers of projections' operands for sequence parallelism are intended and cause no warning.
class ReplicationWarnings {
public:
  /// A tensor is large if it has at least \p largeBytes on each rank after the gather.
  ReplicationWarnings(ShardingState &state, int64_t largeBytes) : state(state), largeBytes(largeBytes) {}

  /// Notes that \p user needs \p value, whose sharding is \p from, with sharding \p to.
  void note(mlir::Value value, const TensorSharding &from, const TensorSharding &to, mlir::Operation *user);
  void emit();

private:
  struct Conflict {
    mlir::Location location;
    mlir::Type type;
    int64_t bytes = 0;
    std::string shardedBy, neededBy;
    mlir::StringAttr axis;
    int64_t count = 0;
  };

  std::string whoNeeds(mlir::Operation *user, mlir::StringAttr axis);

  ShardingState &state;
  int64_t largeBytes;
  llvm::MapVector<mlir::StringAttr, Conflict> conflicts;
};

} // namespace bowline

#endif // BOWLINE_PASSES_SHARDING_PROPAGATION_REPLICATIONWARNINGS_H
