//===- DimensionClasses.cpp - Which dimensions of a module's tensors are one
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Analysis/DimensionClasses.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "passes/Analysis/ShardingState.h"
#include "passes/Analysis/UsesInOrder.h"

using namespace mlir;
using namespace bowline;
using graph::FactorRule;

static int64_t rankOf(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type ? type.getRank() : 0;
}

bool bowline::repeatsScalar(Operation *op) { return graph::isRepetition(op) && rankOf(op->getOperand(0)) == 0; }

void bowline::repeatFreeValues(ModuleOp module) {
  llvm::DenseSet<Value> free;
  auto isFree = [&](Value value) { return free.contains(value) || isFreeConstant(value); };
  auto makesFree = [&](Operation &op) {
    return repeatsScalar(&op) || (op.hasTrait<OpTrait::Elementwise>() && rankOf(op.getResult(0)) > 0 &&
                                  llvm::all_of(op.getOperands(), isFree));
  };
  for (auto function : module.getOps<graph::FuncOp>()) {
    for (Operation &op : function.getBody().front())
      if (makesFree(op))
        free.insert(op.getResult(0));
    // Users come first: copies of them use the values that they are computed from.
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(function.getBody().front()))) {
      if (op.getNumResults() != 1 || !free.contains(op.getResult(0)) || op.use_empty())
        continue;
      OpBuilder builder(&op);
      SmallVector<OpOperand *> uses = usesInOrder(op.getResult(0));
      for (OpOperand *use : llvm::drop_begin(uses))
        use->set(builder.clone(op)->getResult(0));
    }
  }
}

std::optional<int64_t> bowline::soleFactor(const FactorRule &rule, ArrayRef<int64_t> factors) {
  std::optional<int64_t> sole;
  for (int64_t factor : factors) {
    if (rule.factors[factor].size == 1 && factors.size() > 1)
      continue;
    if (sole)
      return std::nullopt;
    sole = factor;
  }
  return sole;
}

DimensionClasses::DimensionClasses(ModuleOp module) : module(module) {
  for (auto variable : module.getOps<graph::Variable>())
    nodeOf(variable.getVariableName(), variable.getTensorType().getRank());
  module.walk([&](Operation *op) { connect(op); });
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

DimensionClasses::Node DimensionClasses::nodesOf(const void *key, int64_t rank) {
  auto [it, isNew] = first.try_emplace(key, static_cast<Node>(parents.size()));
  for (int64_t dim = 0; isNew && dim < rank; ++dim)
    parents.push_back(static_cast<Node>(parents.size()));
  return it->second;
}

DimensionClasses::Node DimensionClasses::nodeOf(StringRef variable, int64_t rank) {
  auto [it, isNew] = variables.try_emplace(variable, static_cast<Node>(parents.size()));
  for (int64_t dim = 0; isNew && dim < rank; ++dim)
    parents.push_back(static_cast<Node>(parents.size()));
  return it->second;
}

DimensionClasses::Node DimensionClasses::nodeOf(Value value) {
  if (auto read = value.getDefiningOp<graph::ReadOp>())
    return nodeOf(read.getVariable(), rankOf(value));
  return nodesOf(value.getAsOpaquePointer(), rankOf(value));
}

DimensionClasses::Node DimensionClasses::nodeOf(OpOperand &operand) {
  return isFreeConstant(operand.get()) ? nodesOf(&operand, rankOf(operand.get())) : nodeOf(operand.get());
}

DimensionClasses::Class DimensionClasses::find(Node node) {
  while (parents[node] != node)
    node = parents[node] = parents[parents[node]];
  return node;
}

void DimensionClasses::join(Node a, Node b) { parents[find(a)] = find(b); }

DimensionClasses::Class DimensionClasses::of(StringRef variable, int64_t dim) {
  return find(variables.find(variable)->second + static_cast<Node>(dim));
}

DimensionClasses::Class DimensionClasses::of(Value value, int64_t dim) {
  return find(nodeOf(value) + static_cast<Node>(dim));
}

DimensionClasses::Class DimensionClasses::of(OpOperand &operand, int64_t dim) {
  return find(nodeOf(operand) + static_cast<Node>(dim));
}

SmallVector<std::optional<DimensionClasses::Node>> DimensionClasses::tensorsOf(Operation *op) {
  SmallVector<std::optional<Node>> nodes;
  auto isTensor = [](Value value) { return isa<RankedTensorType>(value.getType()); };
  for (OpOperand &operand : op->getOpOperands())
    nodes.push_back(isTensor(operand.get()) ? std::optional(nodeOf(operand)) : std::nullopt);
  if (auto write = dyn_cast<graph::WriteOp>(op))
    nodes.push_back(nodeOf(write.getVariable(), rankOf(write.getValue())));
  for (Value result : op->getResults())
    nodes.push_back(isTensor(result) ? std::optional(nodeOf(result)) : std::nullopt);
  return nodes;
}

void DimensionClasses::connect(Operation *op) {
  std::optional<FactorRule> rule = factorRuleOf(op);
  if (!rule)
    return;
  SmallVector<FactorRule::TensorFactors> tensors(rule->operands.begin(), rule->operands.end());
  llvm::append_range(tensors, rule->results);
  SmallVector<std::optional<Node>> known(rule->factors.size());
  for (auto [node, dims] : llvm::zip_equal(tensorsOf(op), tensors))
    for (auto [dim, factors] : llvm::enumerate(dims)) {
      std::optional<int64_t> factor = soleFactor(*rule, factors);
      if (!factor)
        continue;
      if (known[*factor])
        join(*node + static_cast<Node>(dim), *known[*factor]);
      else
        known[*factor] = *node + static_cast<Node>(dim);
    }
}

//===----------------------------------------------------------------------===//
// Questions
//===----------------------------------------------------------------------===//

SmallVector<int64_t> DimensionClasses::dimsIn(Class wanted, Value value) {
  SmallVector<int64_t> dims;
  for (int64_t dim = 0; dim < rankOf(value); ++dim)
    if (of(value, dim) == wanted)
      dims.push_back(dim);
  return dims;
}

SmallVector<int64_t> DimensionClasses::dimsIn(Class wanted, OpOperand &operand) {
  SmallVector<int64_t> dims;
  for (int64_t dim = 0; dim < rankOf(operand.get()); ++dim)
    if (of(operand, dim) == wanted)
      dims.push_back(dim);
  return dims;
}

llvm::SmallSetVector<DimensionClasses::Class, 8> DimensionClasses::classesOf(Operation *op) {
  llvm::SmallSetVector<Class, 8> all;
  for (OpOperand &operand : op->getOpOperands())
    for (int64_t dim = 0; dim < rankOf(operand.get()); ++dim)
      all.insert(of(operand, dim));
  for (Value result : op->getResults())
    for (int64_t dim = 0; dim < rankOf(result); ++dim)
      all.insert(of(result, dim));
  return all;
}

static bool padsWholeDims(Operation *op) {
  auto model = dyn_cast<graph::PaddingModel>(op);
  return model && model.hasNeutralPadding() && model.padsWholeDims();
}

std::string DimensionClasses::findObstacle(Operation *op, Class wanted, bool pads) {
  std::string name = op->getName().getStringRef().str();
  if (auto location = dyn_cast<NameLoc>(op->getLoc()))
    name += " at " + location.getName().str();
  std::optional<FactorRule> rule = factorRuleOf(op);
  if (!rule)
    return name + " takes it as it is";
  SmallVector<FactorRule::TensorFactors> tensors(rule->operands.begin(), rule->operands.end());
  llvm::append_range(tensors, rule->results);
  // Factors that change, by a dimension that consists of one of them.
  SmallVector<bool> changes(rule->factors.size(), false);
  for (auto [node, dims] : llvm::zip_equal(tensorsOf(op), tensors))
    for (auto [dim, factors] : llvm::enumerate(dims)) {
      if (find(*node + static_cast<Node>(dim)) != wanted)
        continue;
      std::optional<int64_t> factor = soleFactor(*rule, factors);
      if (!factor)
        return name + " divides it into several dimensions";
      if (rule->factors[*factor].kind == FactorRule::Kind::Blocked && !(pads && padsWholeDims(op)))
        return name + " needs it whole";
      changes[*factor] = true;
    }
  for (const FactorRule::TensorFactors &dims : tensors)
    for (ArrayRef<int64_t> factors : dims)
      if (!soleFactor(*rule, factors) && llvm::any_of(factors, [&](int64_t factor) { return changes[factor]; }))
        return name + " makes it a part of another dimension";
  return "";
}
