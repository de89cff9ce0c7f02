//===- DimensionSplit.cpp - One dimension is seen as two
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Sharding/Assignment/DimensionSplit.h"
#include "dialects/Dist/DistOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "passes/Analysis/ShardingState.h"

using namespace mlir;
using namespace bowline;
using dist::DistDialect;
using graph::DimSplit;
using graph::DimSplits;

void DimensionSplit::ask(StringRef variable, int64_t dim, int64_t parts) {
  auto type =
      cast<RankedTensorType>(cast<TypeAttr>(SymbolTable::lookupSymbolIn(module, variable)->getAttr("type")).getValue());
  requests.insert({classes.of(variable, dim), {parts, type.getDimSize(dim) / parts}});
}

void DimensionSplit::keep(StringRef variable, int64_t rank) {
  for (int64_t dim = 0; dim < rank; ++dim)
    obstructed.insert(classes.of(variable, dim));
}

bool DimensionSplit::isSplit(StringRef variable, int64_t dim) const {
  auto it = split.find(variable);
  return it != split.end() && it->second.test(dim);
}

void DimensionSplit::run() {
  if (requests.empty())
    return;
  findObstacles();
  // Classes refer to the types before the split: collect all rewrites first.
  std::vector<Rewrite> rewrites;
  for (auto function : module.getOps<graph::FuncOp>())
    for (Operation &op : function.getBody().front())
      collect(&op, rewrites);
  for (const Rewrite &rewrite : rewrites)
    this->rewrite(rewrite);
  splitVariables();
}

//===----------------------------------------------------------------------===//
// Dimensions that can be split
//===----------------------------------------------------------------------===//

void DimensionSplit::findObstacles() {
  for (auto function : module.getOps<graph::FuncOp>()) {
    for (auto &[wanted, request] : requests)
      for (BlockArgument argument : function.getArguments())
        if (!classes.dimsIn(wanted, argument).empty())
          obstructed.insert(wanted);
    for (Operation &op : function.getBody().front()) {
      for (Class own : classes.classesOf(&op))
        if (auto request = requests.find(own); request != requests.end() && !canSplit(&op, own, request->second))
          obstructed.insert(own);
    }
  }
  for (Class own : obstructed)
    requests.erase(own);
}

bool DimensionSplit::canSplit(Operation *op, Class wanted, const DimSplit &request) {
  if (isa<graph::ReadOp>(op))
    return true;
  bool byRule = classes.findObstacle(op, wanted).empty();
  if (isa<graph::WriteOp>(op))
    return byRule;
  auto model = dyn_cast<graph::ShardingModel>(op);
  if (!model)
    return false;
  auto split = [&](Class own) { return own == wanted ? request : DimSplit(); };
  Rewrite rewrite = rewriteOf(op, split);
  return model.canSplitDims(byRule, rewrite.operands, rewrite.results);
}

//===----------------------------------------------------------------------===//
// Dimensions before and after
//===----------------------------------------------------------------------===//

/// The splits of an operation's dimensions; `splitOf` gives the split of a class.
DimensionSplit::Rewrite DimensionSplit::rewriteOf(Operation *op, llvm::function_ref<DimSplit(Class)> splitOf) {
  Rewrite rewrite{op, {}, {}};
  auto splitsOf = [&](auto &tensor, Type type) {
    DimSplits splits;
    auto ranked = dyn_cast<RankedTensorType>(type);
    for (int64_t dim = 0, rank = ranked ? ranked.getRank() : 0; dim < rank; ++dim)
      splits.push_back(splitOf(classes.of(tensor, dim)));
    return splits;
  };
  for (OpOperand &operand : op->getOpOperands())
    rewrite.operands.push_back(splitsOf(operand, operand.get().getType()));
  for (Value result : op->getResults())
    rewrite.results.push_back(splitsOf(result, result.getType()));
  return rewrite;
}

void DimensionSplit::collect(Operation *op, std::vector<Rewrite> &rewrites) {
  Rewrite rewrite = rewriteOf(op, [&](Class own) { return requests.lookup(own); });
  for (auto [result, splits] : llvm::zip_equal(op->getResults(), rewrite.results))
    if (isFreeConstant(result)) // changes at its uses
      splits.assign(splits.size(), DimSplit());
  if (llvm::any_of(rewrite.operands, graph::hasSplit) || llvm::any_of(rewrite.results, graph::hasSplit))
    rewrites.push_back(std::move(rewrite));
}

//===----------------------------------------------------------------------===//
// Rewriting
//===----------------------------------------------------------------------===//

void DimensionSplit::rewrite(const Rewrite &rewrite) {
  Operation *op = rewrite.op;
  OpBuilder builder(op);
  for (auto [operand, splits] : llvm::zip_equal(op->getOpOperands(), rewrite.operands))
    if (graph::hasSplit(splits) && isFreeConstant(operand.get())) {
      auto constant = cast<arith::ConstantOp>(builder.clone(*operand.get().getDefiningOp()));
      auto type = graph::tensorType(constant).clone(graph::splitShape(splits, graph::tensorType(constant).getShape()));
      constant.getResult().setType(type);
      constant.setValueAttr(cast<DenseElementsAttr>(constant.getValue()).resizeSplat(type));
      operand.set(constant);
    }
  if (auto model = dyn_cast<graph::ShardingModel>(op))
    model.splitDims(rewrite.operands, rewrite.results);
  else
    graph::setSplitTypes(op, rewrite.results);
}

void DimensionSplit::splitVariables() {
  for (auto variable : module.getOps<graph::Variable>()) {
    StringRef name = variable.getVariableName();
    RankedTensorType type = variable.getTensorType();
    DimSplits splits;
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      splits.push_back(requests.lookup(classes.of(name, dim)));
    if (!graph::hasSplit(splits))
      continue;
    llvm::SmallBitVector &dims = split[name];
    for (const DimSplit &split : splits) {
      dims.resize(dims.size() + 1);
      if (split.isSplit())
        dims.set(dims.size() - 1);
    }
    RankedTensorType viewed = type.clone(graph::splitShape(splits, type.getShape()));
    MLIRContext *context = variable->getContext();
    variable.setTensorType(viewed);
    variable->removeAttr(DistDialect::kShardingAttr);
    variable->setAttr(DistDialect::kGlobalShapeAttr, DenseI64ArrayAttr::get(context, type.getShape()));
    variable->setAttr(DistDialect::kViewAttr, DenseI64ArrayAttr::get(context, viewed.getShape()));
  }
}
