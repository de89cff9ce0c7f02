//===- InPlaceUpdates.cpp - Values that operations change in place
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Analysis/InPlaceUpdates.h"
#include "dialects/Plan/PlanOps.h"

using namespace mlir;
using namespace bowline;

namespace {
/// A result that is an operand, changed in place.
struct Update {
  OpOperand *operand;
  OpResult result;
};
} // namespace

static SmallVector<Update> updatesOf(Operation *op) {
  if (auto update = dyn_cast<graph::InPlaceUpdate>(op))
    return {{&update.getUpdated(), op->getResult(0)}};
  SmallVector<Update> updates;
  auto call = dyn_cast<plan::CallOp>(op);
  auto kernel = call ? SymbolTable::lookupNearestSymbolFrom<plan::KernelOp>(op, call.getKernelAttr()) : nullptr;
  unsigned operand = 0, result = 0;
  for (unsigned index = 0; kernel && index < kernel.getNumArguments() - kernel.hasScratch(); ++index) {
    plan::Access access = kernel.getArgument(index).getAccess();
    if (access == plan::Access::ReadWrite)
      updates.push_back({&op->getOpOperand(operand), op->getResult(result)});
    operand += access != plan::Access::Write;
    result += access != plan::Access::Read;
  }
  return updates;
}

/// The read of a variable whose buffer the value is in; null if it is no variable's.
static graph::ReadOp readBehind(Value value) {
  while (Operation *producer = value.getDefiningOp()) {
    if (auto read = dyn_cast<graph::ReadOp>(producer))
      return read;
    SmallVector<Update> updates = updatesOf(producer);
    auto *found = llvm::find_if(updates, [&](const Update &update) { return update.result == value; });
    if (found == updates.end())
      return {};
    value = found->operand->get();
  }
  return {};
}

/// The last use of the value, or of a view of it, in its block; null where there is none.
static Operation *lastUse(Value value) {
  Operation *last = nullptr;
  for (Operation *user : value.getUsers()) {
    Operation *other = graph::isView(user) ? lastUse(user->getResult(0)) : user;
    if (other && (!last || last->isBeforeInBlock(other)))
      last = other;
  }
  return last;
}

/// The write that stores `value`, or the result of its in-place updates, to the variable; null where there is none.
static graph::WriteOp writeBehind(Value value, StringRef variable) {
  for (OpOperand &use : value.getUses()) {
    if (auto write = dyn_cast<graph::WriteOp>(use.getOwner()); write && write.getVariable() == variable)
      return write;
    for (const Update &update : updatesOf(use.getOwner()))
      if (update.operand == &use)
        if (graph::WriteOp write = writeBehind(update.result, variable))
          return write;
  }
  return {};
}

static LogicalResult verifyUpdate(const Update &update) {
  Operation *op = update.result.getOwner();
  auto fail = [&] {
    return op->emitOpError("changes operand ") << update.operand->getOperandNumber() << " in place, ";
  };
  graph::ReadOp read = readBehind(update.operand->get());
  if (!read)
    return fail() << "but this operand is no value of a variable; pass the result of a graph.read";
  if (llvm::count(op->getOperands(), update.operand->get()) != 1)
    return fail() << "and uses the same value in another place";
  if (Operation *last = lastUse(update.operand->get()); op->isBeforeInBlock(last))
    return fail().append("but its old value is used afterwards").attachNote(last->getLoc()) << "here";
  StringRef variable = read.getVariable();
  graph::WriteOp write = writeBehind(update.result, variable);
  if (!write)
    return fail() << "but @" << variable << " is not written with the result; add a graph.write";
  for (auto other : op->getBlock()->getOps<graph::ReadOp>()) {
    if (other.getVariable() != variable || other == read || write->isBeforeInBlock(other))
      continue;
    Operation *last = lastUse(other.getResult());
    if (op->isBeforeInBlock(other) || (last && op->isBeforeInBlock(last)))
      return fail().append("but @", variable, " is read before it is written").attachNote(other.getLoc()) << "here";
  }
  for (auto other : op->getBlock()->getOps<graph::WriteOp>())
    if (other.getVariable() == variable && other != write && read->isBeforeInBlock(other) &&
        other->isBeforeInBlock(write))
      return fail().append("but @", variable, " gets another value meanwhile").attachNote(other.getLoc()) << "here";
  return success();
}

LogicalResult bowline::verifyInPlaceUpdates(graph::FuncOp function) {
  for (Operation &op : function.getBody().front())
    for (const Update &update : updatesOf(&op))
      if (failed(verifyUpdate(update)))
        return failure();
  return success();
}
