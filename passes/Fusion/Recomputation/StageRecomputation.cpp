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
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace bowline;

StageRecomputation::StageRecomputation(graph::FuncOp forward, graph::FuncOp backward, SymbolTable &symbols)
    : forward(forward), backward(backward), symbols(symbols) {
  for (Operation &op : forward.getBody().front().without_terminator())
    forwardOps.insert(&op);
}

/// Appends the backward pass to the forward pass: what it reads from a stash is the value that was written.
void StageRecomputation::join() {
  Block &first = forward.getBody().front(), &second = backward.getBody().front();
  llvm::DenseMap<StringRef, graph::WriteOp> kept;
  for (auto write : first.getOps<graph::WriteOp>())
    if (auto state = symbols.lookup<graph::StateOp>(write.getVariable()); state && state.isStash())
      kept[write.getVariable()] = write;
  llvm::SetVector<Operation *> unused;
  for (auto read : llvm::make_early_inc_range(second.getOps<graph::ReadOp>())) {
    graph::WriteOp write = kept.lookup(read.getVariable());
    if (!write)
      continue;
    // Each of them is enough from here to there; what is sent may have more.
    int64_t own = symbols.lookup<graph::StateOp>(read.getVariable()).getSlots().value_or(1);
    slots = slots == 0 ? own : std::min(slots, own);
    read.getResult().replaceAllUsesWith(write.getValue());
    read.erase();
    unused.insert(write);
  }
  // Others may send what is in a stash.
  for (Operation *op : unused) {
    auto write = cast<graph::WriteOp>(op);
    auto state = symbols.lookup<graph::StateOp>(write.getVariable());
    auto uses = SymbolTable::getSymbolUses(state, symbols.getOp());
    if (!uses || !llvm::hasSingleElement(*uses)) {
      stashOf[write.getValue()] = state.getName();
      continue;
    }
    forwardOps.erase(op);
    op->erase();
    symbols.erase(state);
  }
  for (BlockArgument argument : second.getArguments()) {
    BlockArgument stand = first.addArgument(argument.getType(), argument.getLoc());
    argument.replaceAllUsesWith(stand);
    moved.push_back(stand);
  }
  Operation *end = first.getTerminator();
  for (Operation &op : llvm::make_early_inc_range(second.without_terminator()))
    op.moveBefore(end);
}

Value StageRecomputation::throughStash(Value value, OpBuilder &builder) {
  auto type = cast<RankedTensorType>(value.getType());
  if (StringRef name = stashOf.lookup(value); !name.empty())
    return graph::ReadOp::create(builder, value.getLoc(), type, FlatSymbolRefAttr::get(builder.getContext(), name));
  OpBuilder states(forward);
  std::string name = ("stash." + forward.getName() + ".kept." + Twine(stashes++)).str();
  Builder attributes(value.getContext());
  auto state = graph::StateOp::create(states, value.getLoc(), name, graph::Lifetime::Microbatch, type,
                                      graph::FillAttr::get(value.getContext(), attributes.getF64FloatAttr(0.0)));
  state.setSlots(slots);
  symbols.insert(state, forward->getIterator());
  OpBuilder writes(value.getContext());
  writes.setInsertionPointAfterValue(value);
  graph::WriteOp::create(writes, value.getLoc(), FlatSymbolRefAttr::get(state), value);
  return graph::ReadOp::create(builder, value.getLoc(), type, FlatSymbolRefAttr::get(state));
}

/// A value of the forward pass, at the beginning of the backward pass.
Value StageRecomputation::inBackward(Value value, OpBuilder &builder) {
  if (Value there = known.lookup(value))
    return there;
  Value result;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    std::string name = forward.getArgName(argument.getArgNumber());
    for (BlockArgument own : backward.getArguments())
      if (backward.getArgName(own.getArgNumber()) == name)
        result = own;
    if (!result) {
      unsigned index = backward.getNumArguments();
      (void)backward.insertArgument(index, argument.getType(), forward.getArgAttrDict(argument.getArgNumber()),
                                    argument.getLoc());
      result = backward.getArgument(index);
    }
  } else if (Operation *op = value.getDefiningOp(); isa<graph::ReadOp, arith::ConstantOp>(op) || graph::isView(op)) {
    IRMapping operands;
    for (Value operand : op->getOperands())
      operands.map(operand, inBackward(operand, builder));
    result = builder.clone(*op, operands)->getResult(cast<OpResult>(value).getResultNumber());
  } else {
    result = throughStash(value, builder);
  }
  return known[value] = result;
}

/// Everything but the forward pass goes back, with what was cloned for it.
void StageRecomputation::divide() {
  Block &first = forward.getBody().front(), &second = backward.getBody().front();
  Operation *end = second.getTerminator();
  SmallVector<Operation *> back;
  for (Operation &op : first.without_terminator())
    if (!forwardOps.contains(&op))
      back.push_back(&op);
  for (auto [stand, argument] : llvm::zip_equal(moved, second.getArguments()))
    stand.replaceAllUsesWith(argument);
  for (Operation *op : back)
    op->moveBefore(end);
  if (!moved.empty())
    first.eraseArguments(moved.front().getArgNumber(), moved.size());
  OpBuilder builder = OpBuilder::atBlockBegin(&second);
  for (Operation *op : back)
    op->walk([&](Operation *inner) {
      for (OpOperand &operand : inner->getOpOperands())
        if (operand.get().getParentBlock() == &first)
          operand.set(inBackward(operand.get(), builder));
    });
}

std::optional<StageRecomputation::Result> StageRecomputation::run(Choose choose) {
  join();
  if (slots == 0) {
    divide();
    return std::nullopt;
  }
  Recomputation recomputation(forward.getBody().front(), forwardOps);
  Result result{slots, recomputation.totalFlops(), recomputation.keepAll(), choose(recomputation, slots)};
  recomputation.apply(result.chosen);
  divide();
  return result;
}
