//===- RankFunction.cpp - A rank's part of a function that runs once
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Local/Stages/RankFunction.h"
#include "dialects/Dist/DistOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/Analysis/TrainingNames.h"

using namespace mlir;
using namespace bowline;

RankFunction::RankFunction(graph::FuncOp function, const PipelineRanks &ranks, StringAttr axis, int64_t rank,
                           SymbolTable &symbols)
    : function(function), ranks(ranks), axis(axis), rank(rank),
      part(function, function.getName(), function.getPart(), symbols) {
  findMoves();
}

void RankFunction::run() {
  for (Operation &op : function.getBody().front().without_terminator())
    if (auto move = dyn_cast<stage::TransferOp>(op))
      transfer(move);
    else if (auto addition = dyn_cast<stage::SumOp>(op))
      sum(addition);
    else if (auto copy = dyn_cast<stage::BroadcastOp>(op)) // By name: each of the three becomes other communication.
      broadcast(copy);
    else if (llvm::any_of(stage::indexOf(&op), [&](int64_t stage) { return isHere(stage); }))
      part.clone(&op);
  part.finish(function.getBody().front().getTerminator()->getOperands());
}

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

/// A chain of transfers may come back to a rank. All ranks must find the same.
void RankFunction::findMoves() {
  auto transfers = llvm::to_vector(function.getBody().front().getOps<stage::TransferOp>());
  for (stage::TransferOp op : transfers) {
    for (stage::TransferOp before = op; before; before = before.getInput().getDefiningOp<stage::TransferOp>())
      if (ranks.rankOf(before.getFrom()) == ranks.rankOf(op.getTo()))
        copies[op.getResult()] = before.getInput();
  }
  llvm::DenseSet<Value> needed; // results of transfers
  auto need = [&](Value value) {
    for (Value copy = copies.lookup(value); copy; copy = copies.lookup(value))
      value = copy;
    needed.insert(value);
  };
  for (Operation &op : function.getBody().front())
    if (!isa<stage::TransferOp>(op))
      llvm::for_each(op.getOperands(), need);
  for (stage::TransferOp op : llvm::reverse(transfers))
    if (!copies.contains(op.getResult()) && needed.contains(op.getResult())) {
      moves.insert(op);
      need(op.getInput());
    }
}

std::string RankFunction::channelOf(stage::TransferOp op) {
  if (function.getPart() == graph::FunctionPart::Loss)
    return ranks.channelOf(StepKind::SendActivation, static_cast<int64_t>(op.getFrom())).str();
  return (Twine("update.") + Twine(ranks.rankOf(op.getFrom())) + "." + Twine(ranks.rankOf(op.getTo()))).str();
}

void RankFunction::transfer(stage::TransferOp op) {
  if (Value same = copies.lookup(op.getResult())) {
    if (Value here = part.lookup(same); here && isHere(op.getTo()))
      part.map(op.getResult(), here);
    return;
  }
  if (!moves.contains(op))
    return;
  OpBuilder &builder = part.builder();
  if (isHere(op.getFrom()))
    stage::SendOp::create(builder, op.getLoc(), part.lookup(op.getInput()),
                          static_cast<uint64_t>(ranks.rankOf(op.getTo())), channelOf(op));
  if (!isHere(op.getTo()))
    return;
  auto message = stage::ReceiveOp::create(builder, op.getLoc(), op->getResultTypes(),
                                          static_cast<uint64_t>(ranks.rankOf(op.getFrom())), channelOf(op));
  part.map(op.getResult(), message.getResults().front());
}

//===----------------------------------------------------------------------===//
// Sums over all stages
//===----------------------------------------------------------------------===//

Value RankFunction::combine(Location location, Value value, Type type, StringRef why) {
  OpBuilder &builder = part.builder();
  if (!value)
    value = arith::ConstantOp::create(builder, location, cast<TypedAttr>(builder.getZeroAttr(type)));
  return dist::AllReduceOp::create(builder, location, dist::ReduceKind::Sum, value, builder.getArrayAttr({axis}), why);
}

void RankFunction::sum(stage::SumOp op) {
  Value own;
  for (auto [input, stage] : llvm::zip_equal(op.getInputs(), op.getFrom())) {
    if (!isHere(stage))
      continue;
    Value value = part.lookup(input);
    own = own ? Value(arith::AddFOp::create(part.builder(), op.getLoc(), own, value)) : value;
  }
  part.map(op.getResult(), combine(op.getLoc(), own, op.getType(), "split-stages: sum of stages"));
}

void RankFunction::broadcast(stage::BroadcastOp op) {
  Value own = isHere(static_cast<int64_t>(op.getFrom())) ? part.lookup(op.getInput()) : Value();
  part.map(op.getResult(), combine(op.getLoc(), own, op.getType(), "split-stages: to all stages"));
}
