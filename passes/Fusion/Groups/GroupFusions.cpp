//===- GroupFusions.cpp - Put operations that are computed together into graph.fusion
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/GraphOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Remarks.h"
#include "passes/Fusion/Groups/FusionGroups.h"
#include "passes/Fusion/Groups/Traffic.h"
#include "passes/Fusion/Passes.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/FormatVariadic.h"

namespace bowline {
#define GEN_PASS_DEF_GROUPFUSIONS
#include "passes/Fusion/Passes.h.inc"
} // namespace bowline

using namespace mlir;
using namespace bowline;

namespace {

/// Builds the fusion of one group at the place of its last operation.
class Outliner {
public:
  explicit Outliner(const FusionGroups::Group &group)
      : operations(group.operations), members(group.operations.begin(), group.operations.end()) {}

  /// Null where no operation uses a result of the group: then the group is gone.
  graph::FusionOp outline() {
    Operation *last = operations.back();
    for (Operation *op : operations)
      for (Value result : op->getResults())
        if (usedOutside(result))
          outputs.push_back(result);
    if (outputs.empty()) {
      eraseMembers();
      return {};
    }

    SmallVector<Operation *> needed = neededMembers();
    for (Operation *op : needed)
      collectInputs(op);
    OpBuilder builder(last);
    auto fusion =
        graph::FusionOp::create(builder, last->getLoc(), ValueRange(outputs).getTypes(), inputs.getArrayRef());
    Block &body = fusion.getBody().emplaceBlock();
    IRMapping mapping;
    for (Value input : inputs)
      mapping.map(input, body.addArgument(input.getType(), input.getLoc()));
    builder.setInsertionPointToStart(&body);
    for (Operation *op : needed)
      cloneInto(builder, op, mapping);
    SmallVector<Value> yielded = llvm::map_to_vector(outputs, [&](Value value) { return mapping.lookup(value); });
    graph::YieldOp::create(builder, last->getLoc(), yielded);

    for (auto [before, after] : llvm::zip_equal(outputs, fusion.getOutputs()))
      before.replaceAllUsesWith(after);
    eraseMembers();
    return fusion;
  }

private:
  /// A repeated operation is read from inside unless it is the fusion's own result.
  static bool repeats(Operation *producer) { return producer && FusionGroups::isRepeated(producer); }

  /// The operations that the outputs are computed from, in block order.
  SmallVector<Operation *> neededMembers() {
    llvm::SetVector<Operation *> reached;
    for (Value output : outputs)
      reached.insert(output.getDefiningOp());
    for (size_t i = 0; i < reached.size(); ++i)
      for (Value operand : reached[i]->getOperands())
        if (Operation *producer = operand.getDefiningOp();
            producer && (members.contains(producer) || repeats(producer)))
          reached.insert(producer);
    return llvm::filter_to_vector(operations, [&](Operation *op) { return reached.contains(op); });
  }

  void collectInputs(Operation *op) {
    for (Value operand : op->getOperands()) {
      Operation *producer = operand.getDefiningOp();
      if (producer && members.contains(producer))
        continue;
      if (repeats(producer))
        collectInputs(producer);
      else
        inputs.insert(operand);
    }
  }

  /// A use by a repeated operation that only members read stays inside.
  bool usedOutside(Value value) {
    return llvm::any_of(value.getUsers(), [&](Operation *user) {
      if (members.contains(user))
        return false;
      return !(repeats(user) && llvm::none_of(user->getResults(), [&](Value result) { return usedOutside(result); }));
    });
  }

  /// Erases the members, and all operations that use their results: repeated ones that only members read.
  void eraseMembers() {
    llvm::SetVector<Operation *> dead(operations.begin(), operations.end());
    for (size_t i = 0; i < dead.size(); ++i)
      dead.insert(dead[i]->user_begin(), dead[i]->user_end());
    for (Operation *op : dead)
      op->dropAllReferences();
    for (Operation *op : dead)
      op->erase();
  }

  void cloneInto(OpBuilder &builder, Operation *op, IRMapping &mapping) {
    for (Value operand : op->getOperands())
      if (!mapping.contains(operand))
        cloneInto(builder, operand.getDefiningOp(), mapping);
    builder.clone(*op, mapping);
  }

  ArrayRef<Operation *> operations;
  DenseSet<Operation *> members;
  llvm::SetVector<Value> inputs;
  SmallVector<Value> outputs;
};

class GroupFusions : public bowline::impl::GroupFusionsBase<GroupFusions> {
public:
  using GroupFusionsBase::GroupFusionsBase;

  void runOnProgram() override {
    for (auto function : getOperation().getOps<graph::FuncOp>()) {
      groupBlock(function.getBody().front());
      storeRemainingRepeated(function.getBody().front());
    }
  }

private:
  void groupBlock(Block &block) {
    FusionGroups partition(block, merge);
    // Last first: a group that only a useless one reads is useless too.
    SmallVector<const FusionGroups::Group *> groups = partition.groups();
    for (const FusionGroups::Group *group : llvm::reverse(groups)) {
      size_t count = group->operations.size();
      int64_t before = 0;
      for (Operation *op : group->operations)
        before += trafficOf(op);
      graph::FusionOp fusion = Outliner(*group).outline();
      if (fusion && count > 1)
        remark::passed(fusion.getLoc(), remark::RemarkOpts::name("GroupFusions").category("fusion"))
            << llvm::formatv("fused {0} operations, saved {1:F1} MiB of traffic", count,
                             static_cast<double>(before - trafficOf(fusion)) / (1 << 20))
                   .str();
    }
    // Repeated operations that only groups read are not needed any more.
    eraseUnusedRepeated(block);
  }

  /// A repeated operation that a contraction or a write reads has to be stored after all: at its first reader, because
  /// the group that computes its operand may stand behind it. Constants stay.
  void storeRemainingRepeated(Block &block) {
    SmallVector<Operation *> repeated;
    for (Operation &op : block)
      if (FusionGroups::isRepeated(&op) && !op.hasTrait<OpTrait::ConstantLike>())
        repeated.push_back(&op);
    // The last first: an operation that only another one reads becomes part of the reader.
    for (Operation *op : llvm::reverse(repeated)) {
      if (op->use_empty()) {
        op->erase();
        continue;
      }
      op->moveBefore(
          *llvm::min_element(op->getUsers(), [](Operation *lhs, Operation *rhs) { return lhs->isBeforeInBlock(rhs); }));
      FusionGroups::Group alone{{op}, {}};
      Outliner(alone).outline();
    }
    eraseUnusedRepeated(block);
  }

  /// Erases operations that only groups used, which repeated them or saw them otherwise.
  static void eraseUnusedRepeated(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (op.use_empty() && (FusionGroups::isFusible(&op) || graph::isView(&op)))
        op.erase();
  }
};

} // namespace
