//===- CollectiveBuckets.cpp - Independent collectives become one operation
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Local/Collectives/CollectiveBuckets.h"
#include "dialects/Graph/GraphOps.h"
#include "dialects/Stage/StageOps.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace bowline;

static std::optional<dist::CollectiveKind> kindOf(Operation *op) {
  if (isa<dist::AllReduceOp>(op))
    return dist::CollectiveKind::AllReduce;
  if (auto gather = dyn_cast<dist::AllGatherOp>(op); gather && gather.getDim() == 0)
    return dist::CollectiveKind::AllGather;
  if (auto scatter = dyn_cast<dist::ReduceScatterOp>(op); scatter && scatter.getDim() == 0)
    return dist::CollectiveKind::ReduceScatter;
  return std::nullopt;
}

static int64_t bytesOfResult(Operation *op) {
  auto size = [](Value value) {
    auto type = cast<RankedTensorType>(value.getType());
    return type.getNumElements() * llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  };
  return std::max<int64_t>(size(op->getOperand(0)), size(op->getResult(0)));
}

Attribute CollectiveBuckets::keyOf(Operation *op) {
  std::optional<dist::CollectiveKind> kind = kindOf(op);
  if (!kind || stage::isBetweenStages(op))
    return {};
  // All attributes but those that give the reason of a single one.
  NamedAttrList attributes(op->getAttrs());
  attributes.erase("why");
  attributes.set("is", dist::CollectiveKindAttr::get(op->getContext(), *kind));
  attributes.set("of", TypeAttr::get(cast<RankedTensorType>(op->getOperand(0).getType()).getElementType()));
  return attributes.getDictionary(op->getContext());
}

bool CollectiveBuckets::run(Block &block) {
  llvm::SetVector<Attribute> keys;
  for (Operation &op : block)
    if (Attribute key = keyOf(&op))
      keys.insert(key);
  // One key after the other: each sees the order that the one before has left, so that two buckets cannot wait for
  // each other.
  for (Attribute key : keys) {
    limit = limitFor(block, key);
    if (isOfParameters(key)) {
      gatherEarly(block, key);
      continue;
    }
    for (Operation *op : llvm::map_to_vector(block, [](Operation &op) { return &op; })) {
      bool dependent = isDependent(op);
      if (keyOf(op) == key) {
        anyMayJoin |= !members.empty() && !dependent;
        if (dependent || bytes + bytesOfResult(op) > limit)
          close();
        addMember(op);
      } else if (dependent) {
        addDependent(op);
      }
    }
    close();
  }
  return anyMayJoin;
}

bool CollectiveBuckets::isOfParameters(Attribute key) {
  return cast<DictionaryAttr>(key).contains(dist::DistDialect::kPrefetchAttr);
}

void CollectiveBuckets::gatherEarly(Block &block, Attribute key) {
  isEarly = true;
  for (Operation *op : llvm::map_to_vector(block, [](Operation &op) { return &op; })) {
    if (keyOf(op) != key)
      continue;
    std::optional<SmallVector<Operation *>> needed;
    if (!members.empty())
      needed = movableInputs(op);
    anyMayJoin |= needed.has_value();
    if (!needed || bytes + bytesOfResult(op) > limit)
      close();
    else
      for (Operation *input : *needed)
        input->moveBefore(members.front());
    addMember(op);
  }
  close();
  isEarly = false;
}

std::optional<SmallVector<Operation *>> CollectiveBuckets::movableInputs(Operation *op) const {
  Operation *first = members.front();
  llvm::SetVector<Operation *> needed;
  SmallVector<Operation *> worklist{op};
  while (!worklist.empty())
    for (Value operand : worklist.pop_back_val()->getOperands()) {
      Operation *producer = operand.getDefiningOp();
      if (!producer || producer->isBeforeInBlock(first) || !needed.insert(producer))
        continue;
      auto read = dyn_cast<graph::ReadOp>(producer);
      if (read ? isWrittenBetween(first, read)
               : !isMemoryEffectFree(producer) || isa<dist::DistDialect>(producer->getDialect()))
        return std::nullopt;
      worklist.push_back(producer);
    }
  SmallVector<Operation *> ordered(needed.getArrayRef());
  llvm::sort(ordered, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return ordered;
}

bool CollectiveBuckets::isWrittenBetween(Operation *first, graph::ReadOp read) {
  for (Operation *op = first; op != read.getOperation(); op = op->getNextNode())
    if (auto write = dyn_cast<graph::WriteOp>(op); write && write.getVariable() == read.getVariable())
      return true;
  return false;
}

int64_t CollectiveBuckets::limitFor(Block &block, Attribute key) const {
  int64_t all = 0;
  for (Operation &op : block)
    if (keyOf(&op) == key)
      all += bytesOfResult(&op);
  return std::min(most, std::max(kLeastBytes, all / 16));
}

bool CollectiveBuckets::isDependent(Operation *op) const {
  if (members.empty())
    return false;
  bool uses = false;
  op->walk([&](Operation *inner) {
    uses |=
        llvm::any_of(inner->getOperands(), [&](Value operand) { return involved.contains(operand.getDefiningOp()); });
  });
  // A read or write of a variable stays in order with operations that move and access the same variable.
  if (auto access = dyn_cast<graph::ReadOp>(op))
    uses |= written.contains(access.getVariableAttr());
  if (auto access = dyn_cast<graph::WriteOp>(op))
    uses |= written.contains(access.getVariableAttr()) || read.contains(access.getVariableAttr());
  // A transfer between stages keeps its order, which fits the order of other ranks.
  return uses || (linksMove && stage::isBetweenStages(op));
}

void CollectiveBuckets::addMember(Operation *op) {
  members.push_back(op);
  involved.insert(op);
  bytes += bytesOfResult(op);
  dependentsBeforeLast = dependents.size();
}

void CollectiveBuckets::addDependent(Operation *op) {
  dependents.push_back(op);
  involved.insert(op);
  if (auto access = dyn_cast<graph::ReadOp>(op))
    read.insert(access.getVariableAttr());
  if (auto access = dyn_cast<graph::WriteOp>(op))
    written.insert(access.getVariableAttr());
  linksMove |= stage::isBetweenStages(op);
}

void CollectiveBuckets::close() {
  if (members.size() > 1) {
    Operation *first = members.front(), *last = members.back();
    OpBuilder builder(isEarly ? first : last);
    SmallVector<Value> inputs;
    SmallVector<Type> types;
    SmallVector<Location> locations;
    for (Operation *member : members) {
      inputs.push_back(member->getOperand(0));
      types.push_back(member->getResult(0).getType());
      locations.push_back(member->getLoc());
    }
    // The largest one gives the reason and the location.
    auto largest =
        llvm::max_element(members, [](Operation *a, Operation *b) { return bytesOfResult(a) < bytesOfResult(b); });
    std::rotate(locations.begin(), locations.begin() + (largest - members.begin()), locations.end());
    auto why = (*largest)->getAttrOfType<StringAttr>("why");
    std::string text = (why && !why.empty() ? why.str() + "; " : "") + std::to_string(members.size()) + " together";
    auto bucket = dist::BucketOp::create(builder, builder.getFusedLoc(locations), types,
                                         dist::CollectiveKindAttr::get(builder.getContext(), *kindOf(first)),
                                         first->getAttrOfType<dist::ReduceKindAttr>("kind"), inputs,
                                         first->getAttrOfType<ArrayAttr>("axes"), builder.getStringAttr(text));
    bucket->setDiscardableAttrs(first->getDiscardableAttrDictionary());
    Operation *place = bucket;
    for (Operation *dependent : ArrayRef(dependents).take_front(dependentsBeforeLast)) {
      dependent->moveAfter(place);
      place = dependent;
    }
    for (auto [member, result] : llvm::zip_equal(members, bucket.getOutputs())) {
      member->getResult(0).replaceAllUsesWith(result);
      member->erase();
    }
  }
  members.clear();
  dependents.clear();
  involved.clear();
  read.clear();
  written.clear();
  linksMove = false;
  bytes = 0;
  dependentsBeforeLast = 0;
}
