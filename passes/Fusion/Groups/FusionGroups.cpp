//===- FusionGroups.cpp - Which operations are computed together
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Fusion/Groups/FusionGroups.h"
#include "dialects/Graph/GraphOpInterfaces.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace bowline;
using graph::FusionRole;

/// More operations than this in one kernel cost more to compile than they save.
static constexpr size_t kMaxGroupSize = 48;

static ArrayRef<int64_t> shapeOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }

static bool joinsGroups(Operation *op) {
  FusionRole role = graph::fusionRoleOf(op);
  return role == FusionRole::Elementwise || role == FusionRole::Row || role == FusionRole::BlockSum;
}

bool FusionGroups::isRepeated(Operation *op) {
  FusionRole role = graph::fusionRoleOf(op);
  return role == FusionRole::Repeated || role == FusionRole::Absorbed;
}

bool FusionGroups::isFusible(Operation *op) { return graph::fusionRoleOf(op) != FusionRole::None; }

FusionGroups::FusionGroups(Block &block, bool merge) : merge(merge) {
  for (auto [index, op] : llvm::enumerate(block))
    position[&op] = index;
  for (Operation &op : block)
    if (isFusible(&op) && !isRepeated(&op))
      place(&op);
}

SmallVector<const FusionGroups::Group *> FusionGroups::groups() const {
  SmallVector<const Group *> result;
  for (const Group &group : all)
    if (!group.operations.empty())
      result.push_back(&group);
  llvm::sort(result, [&](const Group *lhs, const Group *rhs) {
    return position.lookup(lhs->operations.back()) < position.lookup(rhs->operations.back());
  });
  return result;
}

/// The groups whose results `op` reads, also through repeated operations, latest first.
void FusionGroups::collectProducers(Operation *op, SmallVectorImpl<size_t> &producers) const {
  SmallVector<Operation *> worklist{op};
  while (!worklist.empty())
    for (Value operand : worklist.pop_back_val()->getOperands()) {
      Operation *producer = operand.getDefiningOp();
      if (!producer)
        continue;
      if (isRepeated(producer))
        worklist.push_back(producer);
      else if (auto it = groupOf.find(producer); it != groupOf.end() && !llvm::is_contained(producers, it->second))
        producers.push_back(it->second);
    }
  llvm::sort(producers, [&](size_t lhs, size_t rhs) {
    return position.lookup(all[lhs].operations.back()) > position.lookup(all[rhs].operations.back());
  });
}

/// Whether something outside of the groups `inside` uses a result of `member` and stands before `op`.
bool FusionGroups::usedBefore(Operation *member, Operation *op, ArrayRef<size_t> inside) const {
  for (Operation *user : member->getUsers()) {
    if (user == op)
      continue;
    if (isRepeated(user)) {
      if (usedBefore(user, op, inside))
        return true;
      continue;
    }
    auto it = groupOf.find(user);
    if (it != groupOf.end() && llvm::is_contained(inside, it->second))
      continue;
    if (position.lookup(user) < position.lookup(op))
      return true;
  }
  return false;
}

/// Rows fit when both work on one shape, or one works on values per row of the other. A single value per tensor is not
/// a row: it would serialise the other side.
static bool rowsFit(ArrayRef<int64_t> lhs, ArrayRef<int64_t> rhs) {
  if (lhs == rhs)
    return true;
  if (lhs.empty() || rhs.empty())
    return false;
  return (lhs.drop_back() == rhs && !rhs.empty()) || (rhs.drop_back() == lhs && !lhs.empty());
}

/// Whether `op` reduces values that a group with `rank` dimensions has one of per row: with it the group would have
/// fewer rows to compute in parallel, down to one for a sum of everything.
static bool reducesRows(Operation *op, size_t rank) {
  size_t own = graph::fusionDomainOf(op).size();
  return graph::fusionRoleOf(op) == FusionRole::Row && shapeOf(op->getResult(0)).size() < own && own < rank;
}

bool FusionGroups::canMerge(ArrayRef<size_t> candidates, Operation *op, ArrayRef<int64_t> domain) const {
  size_t size = 1, rank = domain.size();
  SmallVector<ArrayRef<int64_t>> domains{domain};
  for (size_t index : candidates) {
    const Group &group = all[index];
    size += group.operations.size();
    for (ArrayRef<int64_t> other : domains)
      if (!rowsFit(other, group.domain))
        return false;
    domains.push_back(group.domain);
    rank = std::max(rank, group.domain.size());
    for (Operation *member : group.operations)
      if (!joinsGroups(member) || usedBefore(member, op, candidates))
        return false;
  }
  auto reducesRowsOfGroup = [&](Operation *member) { return reducesRows(member, rank); };
  return size <= kMaxGroupSize && !reducesRowsOfGroup(op) && llvm::none_of(candidates, [&](size_t index) {
           return llvm::any_of(all[index].operations, reducesRowsOfGroup);
         });
}

/// The latest group that reads, at full size, something that `op` reads too: together they read it once.
std::optional<size_t> FusionGroups::findSibling(Operation *op, ArrayRef<int64_t> domain) const {
  std::optional<size_t> latest;
  auto last = [&](size_t index) { return position.lookup(all[index].operations.back()); };
  for (Value operand : op->getOperands()) {
    Operation *producer = operand.getDefiningOp();
    if (shapeOf(operand) != domain || (producer && isRepeated(producer)))
      continue;
    for (Operation *user : operand.getUsers()) {
      auto it = groupOf.find(user);
      if (it == groupOf.end() || (latest && last(it->second) <= last(*latest)))
        continue;
      if (all[it->second].domain == domain && canMerge(it->second, op, domain))
        latest = it->second;
    }
  }
  return latest;
}

void FusionGroups::place(Operation *op) {
  SmallVector<int64_t> domain = llvm::to_vector(graph::fusionDomainOf(op));
  SmallVector<size_t> chosen;
  if (merge && joinsGroups(op)) {
    SmallVector<size_t> producers;
    collectProducers(op, producers);
    if (canMerge(producers, op, domain))
      chosen = producers;
    else
      for (size_t producer : producers)
        if (canMerge(producer, op, domain)) {
          chosen = {producer};
          break;
        }
    if (chosen.empty())
      if (std::optional<size_t> sibling = findSibling(op, domain))
        chosen = {*sibling};
  }
  Group group;
  group.domain = domain;
  for (size_t index : chosen) {
    llvm::append_range(group.operations, all[index].operations);
    if (all[index].domain.size() > group.domain.size())
      group.domain = all[index].domain;
    all[index].operations.clear();
  }
  group.operations.push_back(op);
  llvm::sort(group.operations,
             [&](Operation *lhs, Operation *rhs) { return position.lookup(lhs) < position.lookup(rhs); });
  for (Operation *member : group.operations)
    groupOf[member] = all.size();
  all.push_back(std::move(group));
}
