//===- ShardingState.cpp - The shardings of a module's values while they are decided
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Analysis/ShardingState.h"
#include "dialects/Graph/GraphOpInterfaces.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace bowline;
using graph::FactorRule;

//===----------------------------------------------------------------------===//
// TensorSharding
//===----------------------------------------------------------------------===//

bool TensorSharding::uses(StringAttr axis) const {
  return llvm::is_contained(unreduced, axis) ||
         llvm::any_of(dims, [&](const Dim &dim) { return llvm::is_contained(dim.axes, axis); });
}

dist::ShardingAttr TensorSharding::toAttr(MLIRContext *context) const {
  SmallVector<dist::DimAttr> attrs;
  for (const Dim &dim : dims)
    attrs.push_back(dist::DimAttr::get(context, dim.axes, /*open=*/false));
  return dist::ShardingAttr::get(context, attrs, unreduced);
}

TensorSharding TensorSharding::from(dist::ShardingAttr sharding, StringRef origin) {
  TensorSharding result;
  for (dist::DimAttr dim : sharding.getDims())
    result.dims.push_back({llvm::to_vector<2>(dim.getAxes()), dim.getOpen(), origin.str()});
  result.unreduced = llvm::to_vector<2>(sharding.getUnreduced());
  return result;
}

TensorSharding TensorSharding::open(int64_t rank) {
  TensorSharding sharding;
  sharding.dims.resize(rank);
  return sharding;
}

//===----------------------------------------------------------------------===//
// Rules of operations, also of those that lack the interface
//===----------------------------------------------------------------------===//

std::optional<FactorRule> bowline::factorRuleOf(Operation *op) {
  if (auto factored = dyn_cast<graph::Factored>(op))
    return factored.factorRule();
  if (auto write = dyn_cast<graph::WriteOp>(op)) {
    // The value and the variable, as two operands.
    FactorRule rule;
    FactorRule::TensorFactors dims = rule.addDims(cast<RankedTensorType>(write.getValue().getType()).getShape());
    rule.operands = {dims, dims};
    return rule;
  }
  return std::nullopt;
}

bool bowline::isAdditive(Operation *op) {
  auto model = dyn_cast<graph::ShardingModel>(op);
  return model && model.isAdditive();
}

bool bowline::reduces(Operation *op) {
  std::optional<FactorRule> rule = factorRuleOf(op);
  return rule && llvm::any_of(rule->factors, [](const FactorRule::Factor &factor) {
           return factor.kind == FactorRule::Kind::Reduction;
         });
}

bool bowline::isFreeConstant(Value value) {
  DenseElementsAttr elements;
  return matchPattern(value, m_Constant(&elements)) && elements.isSplat();
}

//===----------------------------------------------------------------------===//
// ShardingState
//===----------------------------------------------------------------------===//

/// The sharding that a variable starts with, and whose it is. A state of a parameter starts with that of the parameter,
/// unless it has one: sizes were padded for the axes of the parameter, and not for those that others would propagate. A
/// state of another rank shares no dimensions with its parameter.
static std::pair<dist::ShardingAttr, StringRef> seedOf(const SymbolTable &symbols, Operation *variable) {
  auto shardingOf = [](Operation *op) {
    return op->getAttrOfType<dist::ShardingAttr>(dist::DistDialect::kShardingAttr);
  };
  auto state = dyn_cast<graph::StateOp>(variable);
  Operation *owner = variable;
  if (state && state.getOf() && !shardingOf(state))
    if (auto parameter = symbols.lookup<graph::ParamOp>(*state.getOf());
        parameter && parameter.getTensorType().getRank() == state.getTensorType().getRank())
      owner = parameter;
  return {shardingOf(owner), SymbolTable::getSymbolName(owner)};
}

ShardingState::ShardingState(ModuleOp module, dist::MeshOp mesh) : module(module), mesh(mesh) {
  SymbolTable symbols(module);
  for (Operation &op : *module.getBody()) {
    if (auto variable = dyn_cast<graph::Variable>(op)) {
      auto [sharding, owner] = seedOf(symbols, &op);
      variables[variable.getVariableName()] =
          std::make_unique<TensorSharding>(sharding ? TensorSharding::from(sharding, ("variable '" + owner + "'").str())
                                                    : TensorSharding::open(variable.getTensorType().getRank()));
    }
    auto function = dyn_cast<graph::FuncOp>(op);
    if (!function)
      continue;
    for (BlockArgument argument : function.getArguments())
      if (auto sharding =
              function.getArgAttrOfType<dist::ShardingAttr>(argument.getArgNumber(), dist::DistDialect::kShardingAttr))
        values[argument] = std::make_unique<TensorSharding>(
            TensorSharding::from(sharding, "argument '" + function.getArgName(argument.getArgNumber()) + "'"));
    for (Operation &inner : function.getBody().front())
      seed(&inner);
  }
}

void ShardingState::seed(Operation *op) {
  if (auto reshard = dyn_cast<dist::ReshardOp>(op))
    *find(reshard.getResult()) = TensorSharding::from(reshard.getSharding().closed(), "a reshard");
  auto shardings = op->getAttrOfType<ArrayAttr>(dist::DistDialect::kShardingsAttr);
  // A parameter in another precision has the parameter's sharding, a choice that other tensors do not overrule.
  if (isa<arith::ExtFOp, arith::TruncFOp>(op) && !shardings)
    if (auto read = op->getOperand(0).getDefiningOp<graph::ReadOp>())
      if (TensorSharding *sharding = find(read.getVariable()))
        *find(op->getResult(0)) = *sharding;
  if (!shardings || isa<graph::ReadOp>(op)) // a read has the sharding of its variable
    return;
  auto origin = op->getAttrOfType<StringAttr>(kOriginAttr);
  std::string by = origin ? origin.str() : "the sharding of '" + op->getName().getStringRef().str() + "'";
  for (auto [sharding, result] : llvm::zip_equal(shardings.getAsRange<dist::ShardingAttr>(), op->getResults()))
    if (TensorSharding *seeded = find(result))
      *seeded = TensorSharding::from(sharding, by);
}

TensorSharding *ShardingState::find(StringRef variable) {
  auto it = variables.find(variable);
  return it == variables.end() ? nullptr : it->second.get();
}

TensorSharding *ShardingState::find(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || isFreeConstant(value))
    return nullptr;
  if (auto read = value.getDefiningOp<graph::ReadOp>())
    return find(read.getVariable());
  std::unique_ptr<TensorSharding> &sharding = values[value];
  if (!sharding)
    sharding = std::make_unique<TensorSharding>(TensorSharding::open(type.getRank()));
  return sharding.get();
}

SmallVector<TensorSharding *> ShardingState::operandShardings(Operation *op) {
  SmallVector<TensorSharding *> shardings;
  for (Value operand : op->getOperands())
    shardings.push_back(find(operand));
  if (auto write = dyn_cast<graph::WriteOp>(op))
    shardings.push_back(find(write.getVariable()));
  return shardings;
}

SmallVector<TensorSharding *> ShardingState::resultShardings(Operation *op) {
  SmallVector<TensorSharding *> shardings;
  for (Value result : op->getResults())
    shardings.push_back(find(result));
  return shardings;
}

void ShardingState::annotate() {
  MLIRContext *context = module.getContext();
  for (Operation &op : *module.getBody()) {
    if (auto variable = dyn_cast<graph::Variable>(op))
      op.setAttr(dist::DistDialect::kShardingAttr, find(variable.getVariableName())->toAttr(context));
    auto function = dyn_cast<graph::FuncOp>(op);
    if (!function)
      continue;
    for (BlockArgument argument : function.getArguments())
      function.setArgAttr(argument.getArgNumber(), dist::DistDialect::kShardingAttr, find(argument)->toAttr(context));
    for (Operation &inner : function.getBody().front()) {
      inner.removeDiscardableAttr(kOriginAttr);
      if (inner.getNumResults() == 1 && isFreeConstant(inner.getResult(0)))
        continue;
      SmallVector<Attribute> shardings;
      for (Value result : inner.getResults()) {
        TensorSharding *sharding = find(result);
        int64_t rank = cast<RankedTensorType>(result.getType()).getRank();
        shardings.push_back(sharding ? sharding->toAttr(context) : dist::ShardingAttr::replicated(context, rank));
      }
      if (!shardings.empty())
        inner.setAttr(dist::DistDialect::kShardingsAttr, ArrayAttr::get(context, shardings));
    }
  }
}

//===----------------------------------------------------------------------===//
// FactorAxes
//===----------------------------------------------------------------------===//

namespace {
/// The axes that one dimension of one tensor proposes for one factor.
struct Proposal {
  Axes axes;
  bool closed;
  const std::string *origin;
};
} // namespace

/// Divides the axes of a dimension among its factors, the outermost first: a factor takes axes as long as they divide
/// it, and the next factor takes none unless this one was sharded completely.
static void divide(dist::MeshOp mesh, const FactorRule &rule, ArrayRef<int64_t> factors, const TensorSharding::Dim &dim,
                   SmallVectorImpl<SmallVector<Proposal, 2>> &proposals) {
  ArrayRef<StringAttr> rest = dim.axes;
  for (int64_t factor : factors) {
    int64_t size = rule.factors[factor].size;
    Axes taken;
    while (!rest.empty() && size % mesh.getSize(rest.front()) == 0) {
      size /= mesh.getSize(rest.front());
      taken.push_back(rest.front());
      rest = rest.drop_front();
    }
    if (!taken.empty())
      proposals[factor].push_back({std::move(taken), !dim.open, &dim.origin});
    if (size > 1)
      return;
  }
}

static bool isPrefix(ArrayRef<StringAttr> prefix, ArrayRef<StringAttr> axes) {
  return axes.take_front(prefix.size()) == prefix;
}

FactorAxes::FactorAxes(const FactorRule &rule, dist::MeshOp mesh, ArrayRef<TensorSharding *> operands,
                       ArrayRef<TensorSharding *> results)
    : axes(rule.factors.size()), origins(rule.factors.size()) {
  SmallVector<SmallVector<Proposal, 2>> proposals(rule.factors.size());
  auto collect = [&](ArrayRef<FactorRule::TensorFactors> tensors, ArrayRef<TensorSharding *> shardings) {
    for (auto [tensor, sharding] : llvm::zip_equal(tensors, shardings))
      if (sharding)
        for (auto [factors, dim] : llvm::zip_equal(tensor, sharding->dims))
          divide(mesh, rule, factors, dim, proposals);
  };
  collect(rule.operands, operands);
  collect(rule.results, results);

  // Factors that a closed dimension shards come first, then those that leave no result a partial sum.
  SmallVector<std::tuple<bool, bool, int64_t>> order;
  for (auto [factor, offered] : llvm::enumerate(proposals)) {
    // Parts of a maximum are no sum, which is all that a value can be in parts of.
    std::optional<graph::ReduceKind> combine = rule.factors[factor].combine;
    if (rule.factors[factor].kind == FactorRule::Kind::Blocked || (combine && *combine != graph::ReduceKind::Sum) ||
        offered.empty())
      continue;
    const Proposal *best = &offered.front();
    for (const Proposal &other : llvm::drop_begin(offered)) {
      bool longer = other.axes.size() > best->axes.size() && isPrefix(best->axes, other.axes);
      if (other.closed != best->closed ? other.closed : longer)
        best = &other;
    }
    axes[factor] = best->axes;
    origins[factor] = *best->origin;
    order.push_back(
        {!best->closed, rule.factors[factor].kind == FactorRule::Kind::Reduction, static_cast<int64_t>(factor)});
  }
  llvm::sort(order);
  llvm::SmallPtrSet<StringAttr, 4> used;
  for (auto [open, reduces, factor] : order) {
    Axes &list = axes[factor];
    auto end = llvm::find_if(list, [&](StringAttr axis) { return used.contains(axis); });
    list.erase(end, list.end());
    used.insert(list.begin(), list.end());
  }
  // A factor that one tensor clears is whole in the others too, also in those that were looked at before.
  auto dropFromSome = [&](ArrayRef<FactorRule::TensorFactors> tensors) {
    bool dropped = false;
    for (const FactorRule::TensorFactors &tensor : tensors)
      dropped |= dropBehindWholeFactors(rule, mesh, tensor);
    return dropped;
  };
  while (dropFromSome(rule.operands) || dropFromSome(rule.results)) {
  }
}

bool FactorAxes::dropBehindWholeFactors(const FactorRule &rule, dist::MeshOp mesh,
                                        const FactorRule::TensorFactors &tensor) {
  bool dropped = false;
  for (ArrayRef<int64_t> factors : tensor) {
    bool complete = true;
    for (int64_t factor : factors) {
      if (!complete && !axes[factor].empty()) {
        axes[factor].clear();
        dropped = true;
      }
      complete &= mesh.getSize(axes[factor]) == rule.factors[factor].size;
    }
  }
  return dropped;
}

SmallVector<Axes> FactorAxes::project(const FactorRule::TensorFactors &tensor) const {
  SmallVector<Axes> dims;
  for (ArrayRef<int64_t> factors : tensor) {
    Axes &dim = dims.emplace_back();
    for (int64_t factor : factors)
      llvm::append_range(dim, axes[factor]);
  }
  return dims;
}

Axes FactorAxes::combined(const FactorRule &rule, const FactorRule::TensorFactors &result) const {
  Axes over;
  for (auto [index, factor] : llvm::enumerate(rule.factors))
    if (factor.combine && !graph::hasFactor(result, static_cast<int64_t>(index)))
      llvm::append_range(over, axes[index]);
  return over;
}
