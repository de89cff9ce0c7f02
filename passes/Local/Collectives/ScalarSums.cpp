//===- ScalarSums.cpp - Sums of scalars over ranks, with one collective
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Local/Collectives/ScalarSums.h"
#include "dialects/Stage/StageOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace bowline;

/// An addition of scalars that only another one uses.
static bool isInner(Value value) {
  auto isScalarSum = [](Operation *op) {
    auto add = dyn_cast_or_null<arith::AddFOp>(op);
    auto type = add ? dyn_cast<RankedTensorType>(add.getType()) : RankedTensorType();
    return type && type.getRank() == 0;
  };
  return isScalarSum(value.getDefiningOp()) && value.hasOneUse() && isScalarSum(*value.user_begin());
}

void ScalarSums::run(Block &block) {
  SmallVector<Operation *> roots;
  for (auto add : block.getOps<arith::AddFOp>())
    if (auto type = dyn_cast<RankedTensorType>(add.getType()); type && type.getRank() == 0 && !isInner(add))
      roots.push_back(add);
  for (Operation *root : roots)
    rewrite(root);
}

ScalarSums::Part ScalarSums::stripCollectives(Value leaf) {
  Part part{{}, leaf};
  for (auto all = leaf.getDefiningOp<dist::AllReduceOp>(); all && all->hasOneUse();
       all = part.value.getDefiningOp<dist::AllReduceOp>()) {
    auto own = all.getAxes().getAsRange<StringAttr>();
    if (all.getKind() != dist::ReduceKind::Sum || stage::isBetweenStages(all) ||
        llvm::any_of(own, [&](StringAttr axis) { return llvm::is_contained(part.axes, axis); }))
      break;
    llvm::append_range(part.axes, own);
    part.value = all.getInput();
  }
  llvm::sort(part.axes, [&](StringAttr a, StringAttr b) { return mesh.getAxis(a) < mesh.getAxis(b); });
  return part;
}

void ScalarSums::rewrite(Operation *root) {
  SmallVector<Value> stack = {root->getOperand(1), root->getOperand(0)};
  llvm::SetVector<Operation *> old;
  SmallVector<Part> leaves;
  size_t collectives = 0;
  for (; !stack.empty();) {
    Value value = stack.pop_back_val();
    if (isInner(value)) {
      old.insert(value.getDefiningOp());
      stack.append({value.getDefiningOp()->getOperand(1), value.getDefiningOp()->getOperand(0)});
      continue;
    }
    leaves.push_back(stripCollectives(value));
    for (; value != leaves.back().value; value = value.getDefiningOp()->getOperand(0), ++collectives)
      old.insert(value.getDefiningOp());
  }
  if (collectives < 2)
    return;

  ImplicitLocOpBuilder builder(root->getLoc(), root);
  auto fastmath = cast<arith::AddFOp>(root).getFastmathAttr();
  SmallVector<Part> parts;
  auto add = [&](const Part &part) {
    auto same = llvm::find_if(parts, [&](const Part &other) { return other.axes == part.axes; });
    if (same == parts.end())
      parts.push_back(part);
    else
      same->value = arith::AddFOp::create(builder, same->value, part.value, fastmath);
  };
  llvm::for_each(leaves, add);
  while (parts.size() > 1 || !parts.front().axes.empty()) {
    auto largest = llvm::max_element(parts, [](const Part &a, const Part &b) { return a.axes.size() < b.axes.size(); });
    Part part = *largest;
    parts.erase(largest);
    // This part is summed along the axes that no smaller part has. Those that a smaller part has too are left: it is
    // added to that part, and both are summed along them at once.
    Axes kept;
    for (const Part &other : parts)
      if (other.axes.size() < part.axes.size() && other.axes.size() > kept.size() &&
          llvm::all_of(other.axes, [&](StringAttr axis) { return llvm::is_contained(part.axes, axis); }))
        kept = other.axes;
    SmallVector<Attribute> summed;
    for (StringAttr axis : part.axes)
      if (!llvm::is_contained(kept, axis))
        summed.push_back(axis);
    part.value =
        dist::AllReduceOp::create(builder, part.value.getType(), dist::ReduceKind::Sum, part.value,
                                  builder.getArrayAttr(summed), "coalesce-collectives: each rank adds up its shard");
    part.axes = kept;
    add(part);
  }
  root->replaceAllUsesWith(ValueRange{parts.front().value});
  root->erase();
  // Users come after their operands: erase in the order in which nothing is used any more.
  for (bool changed = true; changed;) {
    changed = false;
    old.remove_if([&](Operation *op) {
      if (!op->use_empty())
        return false;
      op->erase();
      return changed = true;
    });
  }
}
