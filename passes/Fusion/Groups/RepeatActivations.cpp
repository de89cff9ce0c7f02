//===- RepeatActivations.cpp - Compute cheap values again instead of keeping them
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/GraphOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Remarks.h"
#include "passes/Analysis/UsesInOrder.h"
#include "passes/Fusion/Groups/FusionGroups.h"
#include "passes/Fusion/Passes.h"
#include "llvm/Support/FormatVariadic.h"

namespace bowline {
#define GEN_PASS_DEF_REPEATACTIVATIONS
#include "passes/Fusion/Passes.h.inc"
} // namespace bowline

using namespace mlir;
using namespace bowline;

namespace {

/// The operations of one block by position.
class Positions {
public:
  explicit Positions(Block &block) {
    int64_t barriers = 0;
    for (auto [index, op] : llvm::enumerate(block)) {
      // No group reaches across a contraction that reads its results.
      barriers += graph::isContraction(&op);
      position[&op] = index;
      barriersBefore[&op] = barriers;
    }
  }

  bool isBefore(Operation *lhs, Operation *rhs) const { return position.lookup(lhs) < position.lookup(rhs); }
  int64_t barriersBetween(Operation *from, Operation *to) const {
    return barriersBefore.lookup(to) - barriersBefore.lookup(from);
  }

private:
  DenseMap<Operation *, int64_t> position, barriersBefore;
};

class RepeatActivations : public bowline::impl::RepeatActivationsBase<RepeatActivations> {
public:
  using RepeatActivationsBase::RepeatActivationsBase;

  void runOnProgram() override {
    for (auto function : getOperation().getOps<graph::FuncOp>()) {
      Block &block = function.getBody().front();
      Positions positions(block);
      // The activations are collected first, as copies of them, which repeat() inserts, are not to be repeated.
      SmallVector<Operation *> activations;
      for (Operation &op : block)
        if (graph::repeatCostOf(&op) == graph::RepeatCost::Activation)
          activations.push_back(&op);
      for (Operation *op : activations)
        repeat(op, positions);
    }
  }

private:
  void repeat(Operation *op, const Positions &positions) {
    int64_t repeated = 0;
    for (OpOperand *use : usesInOrder(op->getResult(0))) {
      Operation *user = use->getOwner();
      if (!isFarGroup(op, user, positions) || !isOperandKept(op, user, positions))
        continue;
      OpBuilder builder(user);
      use->set(builder.clone(*op)->getResult(0));
      ++repeated;
    }
    if (repeated > 0)
      remark::passed(op->getLoc(), remark::RemarkOpts::name("RepeatActivations").category("fusion"))
          << llvm::formatv("computed again for {0} later reader(s) instead of being kept", repeated).str();
    if (op->use_empty())
      op->erase();
  }

  /// Generated code that reads the result, but not in the group that computes it.
  static bool isFarGroup(Operation *op, Operation *user, const Positions &positions) {
    return FusionGroups::isFusible(user) && !FusionGroups::isRepeated(user) &&
           positions.barriersBetween(op, user) > kFarBarriers;
  }

  /// Whether the operand is in memory as late as the user runs, so that keeping the result is the only cost.
  static bool isOperandKept(Operation *op, Operation *user, const Positions &positions) {
    return llvm::any_of(op->getOperand(0).getUsers(), [&](Operation *other) {
      return other != op && other != user && positions.isBefore(user, other);
    });
  }

  /// Contractions in between that make it certain that two operations are not in one group.
  static constexpr int64_t kFarBarriers = 2;
};

} // namespace
