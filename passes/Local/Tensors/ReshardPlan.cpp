//===- ReshardPlan.cpp - The collectives that a reshard is made of
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Local/Tensors/ReshardPlan.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace bowline;

namespace {

class Planner {
public:
  Planner(dist::ShardingAttr from, dist::ShardingAttr to) : unreduced(llvm::to_vector(from.getUnreduced())) {
    for (dist::DimAttr dim : from.getDims())
      present.push_back(llvm::to_vector(dim.getAxes()));
    for (dist::DimAttr dim : to.getDims())
      wanted.push_back(llvm::to_vector(dim.getAxes()));
    // Sums that stay sums.
    llvm::erase_if(unreduced, [&](StringAttr axis) { return llvm::is_contained(to.getUnreduced(), axis); });
  }

  SmallVector<ReshardStep> run() {
    shrink();
    if (!unreduced.empty())
      steps.push_back({ReshardStep::Kind::AllReduce, std::move(unreduced)});
    unreduced.clear();
    for (auto [dim, axes] : llvm::enumerate(present))
      gather(dim, axes);
    shrink();
    return std::move(steps);
  }

private:
  using AxisList = SmallVector<StringAttr>;

  /// The axis that has to shard `dim` next, behind those that do; null if it has the wanted axes already, or others.
  StringAttr next(size_t dim) const {
    ArrayRef<StringAttr> have = present[dim], want = wanted[dim];
    return have.size() < want.size() && want.take_front(have.size()) == have ? want[have.size()] : StringAttr();
  }

  bool isPresent(StringAttr axis) const {
    return llvm::any_of(present, [&](const AxisList &axes) { return llvm::is_contained(axes, axis); });
  }

  /// Appends a step. If the last step has the same kind and dimension, the axis joins it.
  void append(ReshardStep::Kind kind, StringAttr axis, size_t dim) {
    if (!steps.empty() && steps.back().kind == kind && steps.back().dim == static_cast<int64_t>(dim))
      steps.back().axes.push_back(axis);
    else
      steps.push_back({kind, {axis}, static_cast<int64_t>(dim)});
  }

  void shrink() {
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t dim = 0; dim < present.size(); ++dim)
        while (StringAttr axis = next(dim)) {
          if (llvm::is_contained(unreduced, axis)) {
            append(ReshardStep::Kind::ReduceScatter, axis, dim);
            llvm::erase(unreduced, axis);
          } else if (!isPresent(axis)) {
            append(ReshardStep::Kind::Slice, axis, dim);
          } else if (std::optional<size_t> other = innermostIn(axis)) {
            steps.push_back(
                {ReshardStep::Kind::AllToAll, {axis}, static_cast<int64_t>(dim), static_cast<int64_t>(*other)});
            present[*other].pop_back();
          } else {
            break;
          }
          present[dim].push_back(axis);
          changed = true;
        }
    }
  }

  /// The dimension whose innermost axis is `axis`.
  std::optional<size_t> innermostIn(StringAttr axis) const {
    for (auto [dim, axes] : llvm::enumerate(present))
      if (!axes.empty() && axes.back() == axis)
        return dim;
    return std::nullopt;
  }

  void gather(size_t dim, AxisList &axes) {
    size_t common = 0;
    while (common < axes.size() && common < wanted[dim].size() && axes[common] == wanted[dim][common])
      ++common;
    if (common == axes.size())
      return;
    steps.push_back(
        {ReshardStep::Kind::AllGather, AxisList(axes.begin() + common, axes.end()), static_cast<int64_t>(dim)});
    axes.truncate(common);
  }

  SmallVector<AxisList> present, wanted;
  AxisList unreduced;
  SmallVector<ReshardStep> steps;
};

} // namespace

SmallVector<ReshardStep> bowline::planReshard(dist::ShardingAttr from, dist::ShardingAttr to) {
  return Planner(from, to).run();
}
