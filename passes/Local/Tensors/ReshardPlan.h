//===- ReshardPlan.h - The collectives that a reshard is made of
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_LOCAL_TENSORS_RESHARDPLAN_H
#define BOWLINE_PASSES_LOCAL_TENSORS_RESHARDPLAN_H

#include "dialects/Dist/DistOps.h"

namespace bowline {

struct ReshardStep {
  enum class Kind {
    AllReduce,     ///< completes a sum over `axes` on every rank
    ReduceScatter, ///< completes a sum over `axes`; afterwards `axes` shard `dim`
    AllGather,     ///< gathers the shards of `dim` along `axes`
    AllToAll,      ///< moves `axes` from dimension `from` to `dim`
    Slice          ///< afterwards `axes` shard `dim`, without communication
  };
  Kind kind;
  llvm::SmallVector<mlir::StringAttr> axes;
  int64_t dim = 0, from = 0;

  bool operator==(const ReshardStep &) const = default;
};

/// The steps from one sharding of a tensor to another; empty if they are equal. Steps that make shards smaller come
/// first, so that later steps move fewer bytes: slices, reduce-scatters and all-to-alls, then all-reduces and
/// gathers.
///
/// The axes of a dimension are ordered, outermost first, and a step can only add or remove innermost axes. To change an
/// outer axis, the plan gathers along the axes inside of it and shards along them again.
llvm::SmallVector<ReshardStep> planReshard(dist::ShardingAttr from, dist::ShardingAttr to);

} // namespace bowline

#endif // BOWLINE_PASSES_LOCAL_TENSORS_RESHARDPLAN_H
