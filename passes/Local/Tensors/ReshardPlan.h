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
    ReduceScatter, ///< completes a sum over `axes` in shards: `axes` shard `dim` then
    AllGather,     ///< gathers the shards of `dim` along `axes`
    AllToAll,      ///< `axes` shard `dim` instead of `from` then
    Slice          ///< `axes` shard `dim` then; nothing is sent
  };
  Kind kind;
  llvm::SmallVector<mlir::StringAttr> axes;
  int64_t dim = 0, from = 0;

  bool operator==(const ReshardStep &) const = default;
};

/// The steps from one sharding of a tensor to another, none if they are equal. Steps that make shards smaller come
/// first, so that later ones move less: slices, reduce-scatters, and axes that move between dimensions; then
/// all-reduces and gathers.
///
/// Axes within a dimension are ordered, the first outermost, and only the innermost can be removed or added: a change
/// further out gathers along the axes inside of it and shards along them again.
llvm::SmallVector<ReshardStep> planReshard(dist::ShardingAttr from, dist::ShardingAttr to);

} // namespace bowline

#endif // BOWLINE_PASSES_LOCAL_TENSORS_RESHARDPLAN_H
