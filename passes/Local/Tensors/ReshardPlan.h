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
    ReduceScatter, ///< completes it in parts: cuts `dim` by `axes`
    AllGather,     ///< joins the parts of `dim` that `axes` cut
    AllToAll,      ///< moves the cut by `axes` from `from` to `dim`
    Slice          ///< cuts `dim` by `axes`; nothing is sent
  };
  Kind kind;
  llvm::SmallVector<mlir::StringAttr> axes;
  int64_t dim = 0, from = 0;

  bool operator==(const ReshardStep &) const = default;
};

/// The steps from one sharding of a tensor to another, none where they are equal. What makes pieces smaller comes
/// first, so that later steps move less: slices, sums that are completed in parts, and cuts that move between
/// dimensions; then sums that nobody wants in parts, and gathers.
///
/// Axes within a dimension are ordered, the first outermost, and only the innermost can be removed or added: a change
/// further out gathers what is inside of it and cuts again.
llvm::SmallVector<ReshardStep> planReshard(dist::ShardingAttr from, dist::ShardingAttr to);

} // namespace bowline

#endif // BOWLINE_PASSES_LOCAL_TENSORS_RESHARDPLAN_H
