//===- FlatShards.cpp - On the way to equal parts of all elements, and back
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Placement/FlatShards.h"
#include "dialects/Graph/GraphOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace bowline;

/// Whether the blocks of a tensor are as small as they can be, as those of a flat shard are taken to be.
static bool hasLeastBlocks(RankedTensorType local, const ValuePlacement &placement, const PlacementRules &rules) {
  RankedTensorType whole = graph::tensorType(placement.whole);
  if (local.getRank() != whole.getRank())
    return false;
  for (auto [here, size, axes] : llvm::zip_equal(local.getShape(), whole.getShape(), placement.axes))
    if (here != static_cast<int64_t>(llvm::divideCeil(size, rules.ranksAlong(axes))))
      return false;
  return true;
}

SmallVector<ValuePlacement, 1> bowline::placeFlat(Operation *op, ArrayRef<ValuePlacement> operands,
                                                  const PlacementRules &rules) {
  Value result = op->getResult(0);
  SmallVector<ValuePlacement, 1> found;
  for (ValuePlacement placement : operands) {
    if (placement.isUniform) {
      if (isa<graph::ReshapeOp>(op))
        found.push_back(placement);
      continue;
    }
    RankedTensorType to = graph::tensorType(result), from = graph::tensorType(op->getOperand(0)),
                     all = graph::tensorType(placement.whole);
    bool isUndivided = placement.flat && placement.flat->empty();
    if (isa<graph::ReshapeOp>(op) && to.getRank() == 1 && !placement.flat) {
      if (!hasLeastBlocks(from, placement, rules))
        continue;
      placement.flat.emplace();
      found.push_back(placement);
    } else if (isa<graph::ReshapeOp>(op) && placement.flat && to.getRank() == all.getRank()) {
      // Equal parts of all elements are blocks of rows, unless zeros lie behind the elements.
      bool areDivided = llvm::any_of(placement.axes, [](const MeshAxes &axes) { return !axes.empty(); });
      if (placement.tail || (!isUndivided && areDivided))
        continue;
      if (!isUndivided)
        placement.axes[0] = *placement.flat;
      placement.flat.reset();
      if (rules.mismatch(to, placement).empty())
        found.push_back(placement);
    } else if (auto pad = dyn_cast<graph::PadOp>(op);
               pad && from.getRank() == 1 && pad.getLow()[0] == 0 && (isUndivided || all.getRank() == 1)) {
      // Zeros stand behind a block, not behind elements that may lie there already.
      int64_t block =
          all.getRank() == 1
              ? static_cast<int64_t>(llvm::divideCeil(all.getDimSize(0), rules.ranksAlong(placement.axes[0])))
              : from.getDimSize(0);
      bool hasMore = placement.tail || (!placement.flat && from.getDimSize(0) != block);
      if (hasMore)
        continue;
      if (!placement.flat)
        placement.flat.emplace();
      placement.tail = 0.0;
      found.push_back(placement);
    } else if (auto slice = dyn_cast<graph::SliceOp>(op); slice && !placement.flat && all == to) {
      // The slice leaves out the elements behind the end.
      if (llvm::all_of(slice.getOffsets(), [](int64_t offset) { return offset == 0; }) && !placement.isDivided())
        found.push_back(placement);
    } else if (slice && isUndivided && slice.getOffsets()[0] == 0) {
      // The zeros go that were added behind the end: the rest is a block.
      int64_t block = 1;
      for (auto [size, axes] : llvm::zip_equal(all.getShape(), placement.axes))
        block *= static_cast<int64_t>(llvm::divideCeil(size, rules.ranksAlong(axes)));
      if (to.getNumElements() != block)
        continue;
      placement.tail.reset();
      if (all.getRank() == 1)
        placement.flat.reset();
      found.push_back(placement);
    } else if (auto reduce = dyn_cast<graph::ReduceOp>(op);
               reduce && placement.flat && to.getRank() == 0 && reduce.getKind() == graph::ReduceKind::Sum) {
      Value sum = placement.whole;
      while (sum && graph::tensorType(sum).getRank() > 0) {
        Value next;
        for (Operation *user : sum.getUsers())
          if (auto further = dyn_cast<graph::ReduceOp>(user);
              further && further.getKind() == graph::ReduceKind::Sum && further->getBlock() == sum.getParentBlock())
            next = further.getResult();
        sum = next;
      }
      int64_t elements = from.getNumElements() * rules.ranksAlong(*placement.flat);
      for (const MeshAxes &axes : placement.axes)
        elements *= rules.ranksAlong(axes);
      // Zeros behind the end add nothing.
      bool hasZeros = !placement.tail || placement.tail == 0.0;
      for (size_t dim = 0; dim < placement.axes.size(); ++dim)
        if (!placement.axes[dim].empty() && all.getDimSize(dim) % rules.ranksAlong(placement.axes[dim]) != 0)
          hasZeros &= placement.paddingOf(dim) == 0.0;
      bool isSum = placement.partial.empty() || placement.combine == dist::ReduceKind::Sum;
      if (!sum || !isSum || elements < all.getNumElements() || (elements > all.getNumElements() && !hasZeros))
        continue;
      ValuePlacement scalar = ValuePlacement::replicated(sum);
      scalar.partial = placement.partial;
      llvm::append_range(scalar.partial, *placement.flat);
      for (const MeshAxes &axes : placement.axes)
        llvm::append_range(scalar.partial, axes);
      sortAxes(scalar.partial);
      found.push_back(scalar);
    }
  }
  return found;
}
