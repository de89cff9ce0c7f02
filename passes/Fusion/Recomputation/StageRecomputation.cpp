//===- StageRecomputation.cpp - Which values of a pipeline's stage its backward pass computes again
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Fusion/Recomputation/StageRecomputation.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "passes/Analysis/StashSlots.h"
#include "passes/Analysis/TrainingNames.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>

using namespace mlir;
using namespace bowline;

StageRecomputation::StageRecomputation(graph::FuncOp forward, ArrayRef<graph::FuncOp> backward, graph::EntryOp entry,
                                       SymbolTable &symbols)
    : functions{forward}, entry(entry), symbols(symbols) {
  llvm::append_range(functions, backward);
  for (Operation &op : forward.getBody().front().without_terminator())
    forwardOps.insert(&op);
}

int StageRecomputation::functionOf(Block *block) {
  for (auto [index, function] : llvm::enumerate(functions))
    if (&function.getBody().front() == block)
      return static_cast<int>(index);
  llvm_unreachable("a value of another function");
}

int64_t StageRecomputation::slotsBetween(int writer, int reader) {
  auto placeOf = [&](int function) -> int64_t {
    for (auto [place, name] : llvm::enumerate(entry.getFunctions().getAsRange<FlatSymbolRefAttr>()))
      if (name.getAttr() == functions[function].getSymNameAttr())
        return static_cast<int64_t>(place);
    return -1;
  };
  std::vector<MicrobatchStep> steps;
  ArrayRef<int64_t> timeline = *entry.getTimeline();
  for (size_t step = 0; step + 1 < timeline.size(); step += 2)
    steps.push_back({timeline[step], timeline[step + 1]});
  return slotsInOrder(steps, placeOf(writer), {placeOf(reader)});
}

//===----------------------------------------------------------------------===//
// One block
//===----------------------------------------------------------------------===//

void StageRecomputation::join() {
  SmallVector<graph::WriteOp> unused;
  for (int function = 1; function < static_cast<int>(functions.size()); ++function)
    take(function, unused);
  for (graph::WriteOp write : unused) {
    auto state = symbols.lookup<graph::StateOp>(write.getVariable());
    auto uses = SymbolTable::getSymbolUses(state, symbols.getOp());
    // Other operations may send the value of a stash.
    if (!uses || !llvm::hasSingleElement(*uses)) {
      auto home = homes.find(write);
      int writer = home == homes.end() ? 0 : home->second;
      stashes[write.getValue()] = {state, writer};
      continue;
    }
    forwardOps.erase(write);
    homes.erase(write);
    write.erase();
    symbols.erase(state);
  }
}

/// Replaces each read of a stash by the value that an earlier function wrote.
void StageRecomputation::take(int function, SmallVectorImpl<graph::WriteOp> &unused) {
  Block &joined = bodyOf(0), &own = bodyOf(function);
  llvm::StringMap<graph::WriteOp> written;
  for (auto write : joined.getOps<graph::WriteOp>())
    if (auto state = symbols.lookup<graph::StateOp>(write.getVariable()); state && state.isStash())
      written[write.getVariable()] = write;
  for (auto read : llvm::make_early_inc_range(own.getOps<graph::ReadOp>())) {
    graph::WriteOp write = written.lookup(read.getVariable());
    if (!write)
      continue;
    read.getResult().replaceAllUsesWith(write.getValue());
    read.erase();
    if (!llvm::is_contained(unused, write))
      unused.push_back(write);
  }
  for (BlockArgument argument : own.getArguments()) {
    BlockArgument standIn = joined.addArgument(argument.getType(), argument.getLoc());
    argument.replaceAllUsesWith(standIn);
    standIns.push_back({standIn, argument});
  }
  Operation *end = joined.getTerminator();
  for (Operation &op : llvm::make_early_inc_range(own.without_terminator())) {
    op.moveBefore(end);
    homes[&op] = function;
  }
}

//===----------------------------------------------------------------------===//
// Functions again
//===----------------------------------------------------------------------===//

void StageRecomputation::divide() {
  Block &joined = bodyOf(0);
  std::vector<SmallVector<Operation *>> parts(functions.size());
  int function = static_cast<int>(functions.size()) - 1;
  for (Operation &op : llvm::reverse(joined.without_terminator())) {
    if (forwardOps.contains(&op))
      continue;
    // Gathers may have moved in front of clones that an earlier function needs.
    if (auto home = homes.find(&op); home != homes.end())
      function = std::min(function, home->second);
    parts[function].push_back(&op);
  }
  for (auto [standIn, argument] : standIns)
    standIn.replaceAllUsesWith(argument);
  for (auto [index, part] : llvm::enumerate(parts)) {
    Operation *end = bodyOf(static_cast<int>(index)).getTerminator();
    for (Operation *op : llvm::reverse(part))
      op->moveBefore(end);
  }
  if (!standIns.empty())
    joined.eraseArguments(cast<BlockArgument>(standIns.front().first).getArgNumber(), standIns.size());
  for (graph::FuncOp part : functions)
    begins.push_back(OpBuilder::atBlockBegin(&part.getBody().front()));
  for (auto [index, part] : llvm::enumerate(parts))
    for (Operation *op : llvm::reverse(part))
      op->walk([&, index = static_cast<int>(index)](Operation *inner) {
        for (OpOperand &operand : inner->getOpOperands()) {
          Block *block = operand.get().getParentBlock();
          if (block->getParentOp() != functions[index] && isa<graph::FuncOp>(block->getParentOp()))
            operand.set(valueIn(index, operand.get()));
        }
      });
}

Value StageRecomputation::valueIn(int function, Value value) {
  int home = functionOf(value.getParentBlock());
  if (home == function)
    return value;
  if (Value there = known.lookup({value, function}))
    return there;
  Value result;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    result = argumentIn(function, argument, functions[home].getArgName(argument.getArgNumber()));
  } else if (Value gathered = gatheredIn(function, home, value)) {
    result = gathered;
  } else if (Operation *op = value.getDefiningOp(); isa<graph::ReadOp, arith::ConstantOp>(op) || graph::isView(op)) {
    IRMapping operands;
    for (Value operand : op->getOperands())
      operands.map(operand, valueIn(function, operand));
    result = begins[function].clone(*op, operands)->getResult(cast<OpResult>(value).getResultNumber());
  } else {
    result = throughStash(function, value);
  }
  return known[{value, function}] = result;
}

Value StageRecomputation::gatheredIn(int function, int home, Value value) {
  auto read = value.getDefiningOp<graph::ReadOp>();
  StringRef parameter = read ? read.getVariable() : StringRef();
  if (!parameter.consume_front(training::gatheredFor(functions[home].getSymName(), "")))
    return {};
  auto state = symbols.lookup<graph::StateOp>(training::gatheredFor(functions[function].getSymName(), parameter));
  if (!state || state.getTensorType() != value.getType())
    return {};
  return graph::ReadOp::create(begins[function], value.getLoc(), value.getType(), FlatSymbolRefAttr::get(state));
}

Value StageRecomputation::argumentIn(int function, BlockArgument argument, StringRef name) {
  graph::FuncOp to = functions[function];
  for (BlockArgument own : to.getArguments())
    if (to.getArgName(own.getArgNumber()) == name)
      return own;
  graph::FuncOp from = functions[functionOf(argument.getOwner())];
  unsigned index = to.getNumArguments();
  (void)to.insertArgument(index, argument.getType(), from.getArgAttrDict(argument.getArgNumber()), argument.getLoc());
  return to.getArgument(index);
}

Value StageRecomputation::throughStash(int function, Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  auto [found, isNew] = stashes.try_emplace(value);
  Stash &stash = found->second;
  if (isNew) {
    stash.writer = functionOf(value.getParentBlock());
    graph::FuncOp writer = functions[stash.writer];
    std::string name = ("stash." + writer.getName() + ".kept." + Twine(made++)).str();
    OpBuilder states(writer);
    stash.state = graph::StateOp::create(states, value.getLoc(), name, graph::Lifetime::Microbatch, type,
                                         graph::FillAttr::get(value.getContext(), states.getF64FloatAttr(0.0)));
    symbols.insert(stash.state, writer->getIterator());
    OpBuilder writes(value.getContext());
    writes.setInsertionPointAfterValue(value);
    graph::WriteOp::create(writes, value.getLoc(), FlatSymbolRefAttr::get(stash.state), value);
  }
  int64_t slots = std::max<int64_t>(stash.state.getSlots().value_or(1), slotsBetween(stash.writer, function));
  stash.state.setSlots(slots);
  return graph::ReadOp::create(begins[function], value.getLoc(), type, FlatSymbolRefAttr::get(stash.state));
}

std::optional<StageRecomputation::Result> StageRecomputation::run(Choose choose) {
  join();
  Recomputation recomputation(bodyOf(0), forwardOps);
  Recomputation::Choice none = recomputation.keepAll();
  if (llvm::none_of(none.kept, [](bool kept) { return kept; })) {
    divide();
    return std::nullopt;
  }
  int64_t slots = slotsBetween(0, static_cast<int>(functions.size()) - 1);
  Result result{slots, recomputation.totalFlops(), std::move(none), choose(recomputation, slots)};
  recomputation.apply(result.chosen);
  divide();
  return result;
}
