//===- ReshardInsertion.cpp - Reshards wherever producer and consumer differ
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Sharding/Propagation/ReshardInsertion.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace bowline;

/// "graph.dot_general at layers.0.attn.wq".
static std::string describe(Operation *op) {
  std::string text = op->getName().getStringRef().str();
  if (auto name = dyn_cast<NameLoc>(op->getLoc()))
    text += " at " + name.getName().str();
  return text;
}

static std::string describe(const Axes &axes) {
  std::string text;
  for (StringAttr axis : axes)
    text += (text.empty() ? "" : ", ") + axis.str();
  return text;
}

/// Axes of sums that `from` has and `to` has not.
static Axes completedSums(const TensorSharding &from, const TensorSharding &to) {
  Axes axes = from.unreduced;
  llvm::erase_if(axes, [&](StringAttr axis) { return llvm::is_contained(to.unreduced, axis); });
  return axes;
}

/// Additive, one element of the result for each of the only operand.
static bool isLinear(Operation *op) { return isAdditive(op) && op->getNumOperands() == 1 && !reduces(op); }

/// Why a result of `op`, computed as `from`, becomes `to` at once. Where it is from is the location.
static std::string reasonOfResult(Operation *op, const TensorSharding &from, const TensorSharding &to) {
  std::string name = op->getName().getStringRef().str();
  Axes sums = completedSums(from, to);
  if (sums.empty())
    return "propagate-shardings: users of the " + name + " need it sharded otherwise";
  if (graph::isContraction(op) && reduces(op))
    return "propagate-shardings: sum of partial products, whose contraction is sharded over " + describe(sums);
  return "propagate-shardings: sum over " + describe(sums) + " of the partial results of " + name;
}

/// Why `user` gets a value, computed as `from`, as `to`.
static std::string reasonOfOperand(Operation *user, const TensorSharding &from, const TensorSharding &to) {
  Axes sums = completedSums(from, to);
  std::string needs = sums.empty() ? "needs it sharded otherwise" : "needs the sum over " + describe(sums);
  return "propagate-shardings: " + describe(user) + " " + needs;
}

static bool sameAxes(const TensorSharding &a, const TensorSharding &b) {
  return a.unreduced == b.unreduced &&
         llvm::equal(a.dims, b.dims,
                     [](const TensorSharding::Dim &x, const TensorSharding::Dim &y) { return x.axes == y.axes; });
}

static TensorSharding toSharding(SmallVector<Axes> dims, Axes unreduced = {}) {
  TensorSharding sharding;
  for (Axes &axes : dims)
    sharding.dims.push_back({std::move(axes), false, ""});
  sharding.unreduced = std::move(unreduced);
  return sharding;
}

/// Removes axes from a sharding. The summands of a sum over axes are whole along these; they can shard the result when
/// the sum is completed.
static void dropAxes(TensorSharding &sharding, const Axes &axes) {
  for (TensorSharding::Dim &dim : sharding.dims)
    dim.axes.erase(llvm::find_if(dim.axes, [&](StringAttr axis) { return llvm::is_contained(axes, axis); }),
                   dim.axes.end());
}

static void makeSum(TensorSharding &sharding, const Axes &axes) {
  sharding.unreduced = axes;
  dropAxes(sharding, axes);
}

//===----------------------------------------------------------------------===//
// Sums on their way into accumulators
//===----------------------------------------------------------------------===//

/// Zeros are the parts of a sum that is zero. Any other constant would be added once per rank.
static bool isZero(Value value) { return matchPattern(value, m_AnyZeroFloat()) || matchPattern(value, m_Zero()); }

/// A sum may stay in parts if all of its way is linear and used for nothing else. Nothing: no constraint.
std::optional<Axes> ReshardInsertion::partialAxes(Value value, StringRef accumulator) {
  if (isFreeConstant(value))
    return isZero(value) ? std::nullopt : std::optional<Axes>(Axes());
  Operation *op = value.getDefiningOp();
  if (!op || (!value.hasOneUse() && !isa<graph::ReadOp>(op)))
    return Axes();
  if (auto read = dyn_cast<graph::ReadOp>(op))
    return read.getVariable() == accumulator ? std::nullopt : std::optional<Axes>(Axes());
  if (isLinear(op))
    return partialAxes(op->getOperand(0), accumulator);
  if (isa<arith::AddFOp>(op)) {
    std::optional<Axes> lhs = partialAxes(op->getOperand(0), accumulator);
    std::optional<Axes> rhs = partialAxes(op->getOperand(1), accumulator);
    if (!lhs || !rhs)
      return lhs ? lhs : rhs;
    llvm::erase_if(*lhs, [&](StringAttr axis) { return !llvm::is_contained(*rhs, axis); });
    return lhs;
  }
  std::optional<graph::FactorRule> rule = factorRuleOf(op);
  if (!rule)
    return Axes();
  FactorAxes axes(*rule, state.mesh, state.operandShardings(op), state.resultShardings(op));
  return axes.combined(*rule, rule->results[cast<OpResult>(value).getResultNumber()]);
}

void ReshardInsertion::keepPartial(Value value, StringRef accumulator, const Axes &axes) {
  Operation *op = value.getDefiningOp();
  if (isFreeConstant(value) || !op)
    return;
  if (!isa<graph::ReadOp>(op))
    makeSum(*state.find(value), axes);
  if (isLinear(op) || isa<arith::AddFOp>(op))
    for (Value operand : op->getOperands())
      keepPartial(operand, accumulator, axes);
}

void ReshardInsertion::deferSums() {
  SymbolTable symbols(state.module);
  llvm::MapVector<StringRef, SmallVector<graph::WriteOp>> writes;
  state.module.walk([&](graph::WriteOp write) {
    auto variable = symbols.lookup<graph::StateOp>(write.getVariable());
    auto start = variable ? dyn_cast<graph::FillAttr>(variable.getInit()) : graph::FillAttr();
    if (start && start.getValue() == 0.0 && variable.isAccumulator())
      writes[write.getVariable()].push_back(write);
  });
  for (auto &[accumulator, list] : writes) {
    std::optional<Axes> common;
    for (graph::WriteOp write : list) {
      std::optional<Axes> axes = partialAxes(write.getValue(), accumulator);
      if (axes && common)
        llvm::erase_if(*common, [&](StringAttr axis) { return !llvm::is_contained(*axes, axis); });
      else if (axes)
        common = axes;
    }
    if (!common)
      continue;
    // An accumulator that is sharded along an axis gets shards of the complete sum over it.
    TensorSharding *sharding = state.find(accumulator);
    llvm::erase_if(*common, [&](StringAttr axis) { return sharding->uses(axis); });
    if (common->empty())
      continue;
    sharding->unreduced = *common;
    for (graph::WriteOp write : list)
      keepPartial(write.getValue(), accumulator, *common);
  }
}

/// Axes over which \p value is a sum of parts as it is computed; none if more than one operation uses it.
Axes ReshardInsertion::partsOf(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || !value.hasOneUse() || !state.find(value) || !state.find(value)->unreduced.empty())
    return {};
  if (auto it = sums.find(value); it != sums.end())
    return it->second;
  std::optional<graph::FactorRule> rule = factorRuleOf(op);
  if (!rule)
    return {};
  FactorAxes axes(*rule, state.mesh, state.operandShardings(op), state.resultShardings(op));
  return axes.combined(*rule, rule->results[cast<OpResult>(value).getResultNumber()]);
}

void ReshardInsertion::completeLate() {
  state.module.walk([&](Operation *op) {
    if (auto add = dyn_cast<arith::AddFOp>(op)) {
      Axes lhs = partsOf(add.getLhs()), rhs = partsOf(add.getRhs());
      if (lhs.empty() || lhs != rhs)
        return;
      makeSum(*state.find(add.getLhs()), lhs);
      makeSum(*state.find(add.getRhs()), rhs);
      sums[add.getResult()] = lhs;
      return;
    }
    if (!isAdditive(op) || op->getNumOperands() != 1)
      return;
    Axes parts = partsOf(op->getOperand(0));
    if (parts.empty())
      return;
    makeSum(*state.find(op->getOperand(0)), parts);
    Axes own = partsOf(op->getResult(0));
    llvm::append_range(parts, own);
    sums[op->getResult(0)] = std::move(parts);
  });
}

//===----------------------------------------------------------------------===//
// Reshards
//===----------------------------------------------------------------------===//

void ReshardInsertion::run() {
  deferSums();
  completeLate();
  for (auto function : state.module.getOps<graph::FuncOp>())
    for (Operation &op : llvm::make_early_inc_range(function.getBody().front()))
      visit(&op);
  for (auto &[value, sharding] : actual)
    *state.find(value) = sharding;
  warnings.emit();
}

Value ReshardInsertion::reshard(Value value, const TensorSharding &to, Operation *user) {
  dist::ShardingAttr sharding = to.toAttr(value.getContext());
  Value &result = reshards[{value, sharding}];
  if (result)
    return result;
  OpBuilder builder(value.getContext());
  builder.setInsertionPointAfterValue(value);
  result =
      dist::ReshardOp::create(builder, value.getLoc(), value, sharding, reasonOfOperand(user, *state.find(value), to));
  *state.find(result) = to;
  return result;
}

void ReshardInsertion::visitOperand(OpOperand &operand, const TensorSharding &required) {
  Value value = operand.get();
  if (isFreeConstant(value))
    return useOwnConstant(operand, required);
  TensorSharding *sharding = state.find(value);
  if (sharding && !sameAxes(*sharding, required)) {
    warnings.note(value, *sharding, required, operand.getOwner());
    operand.set(reshard(value, required, operand.getOwner()));
  }
}

/// Made in the pieces that the operation wants.
void ReshardInsertion::useOwnConstant(OpOperand &operand, const TensorSharding &required) {
  dist::ShardingAttr sharding = required.toAttr(operand.get().getContext()).withUnreduced({});
  if (sharding.isReplicated())
    return;
  OpBuilder builder(operand.getOwner());
  Operation *constant = builder.clone(*operand.get().getDefiningOp());
  constant->setAttr(dist::DistDialect::kShardingsAttr, builder.getArrayAttr({sharding}));
  operand.set(constant->getResult(0));
}

/// Whether \p op computes parts of its result from parts of its operands.
bool ReshardInsertion::takesParts(Operation *op) {
  if (!isAdditive(op))
    return false;
  TensorSharding *sharding = state.find(op->getResult(0));
  return sums.contains(op->getResult(0)) || (sharding && !sharding->unreduced.empty() && !reduces(op));
}

/// An operation that says nothing about its dimensions works on whole tensors.
void ReshardInsertion::visitWhole(Operation *op) {
  auto whole = [](Value value) { return TensorSharding::open(cast<RankedTensorType>(value.getType()).getRank()); };
  for (OpOperand &operand : op->getOpOperands())
    if (isa<RankedTensorType>(operand.get().getType()))
      visitOperand(operand, whole(operand.get()));
  for (OpResult result : op->getResults())
    if (isa<RankedTensorType>(result.getType()))
      produce(result, whole(result));
}

void ReshardInsertion::visit(Operation *op) {
  if (isa<graph::ReadOp, dist::ReshardOp>(op))
    return;
  std::optional<graph::FactorRule> rule = factorRuleOf(op);
  if (!rule)
    return visitWhole(op);
  // The axes over which results stay partial sums; these shard nothing before the sum is complete.
  Axes through;
  for (Value operand : op->getOperands())
    if (TensorSharding *sharding = state.find(operand); sharding && takesParts(op))
      through = sharding->unreduced;
  SmallVector<TensorSharding *> results = state.resultShardings(op);
  SmallVector<TensorSharding, 2> withoutSums;
  withoutSums.reserve(results.size());
  for (TensorSharding *&sharding : results)
    if (sharding && !through.empty()) {
      dropAxes(withoutSums.emplace_back(*sharding), through);
      sharding = &withoutSums.back();
    }
  FactorAxes axes(*rule, state.mesh, state.operandShardings(op), results);
  if (auto write = dyn_cast<graph::WriteOp>(op)) {
    TensorSharding variable = *state.find(write.getVariable());
    return visitOperand(op->getOpOperand(0), variable);
  }
  for (auto [operand, tensor] : llvm::zip_equal(op->getOpOperands(), rule->operands))
    if (isa<RankedTensorType>(operand.get().getType()))
      visitOperand(operand, toSharding(axes.project(tensor), through));
  for (auto [result, tensor] : llvm::zip_equal(op->getResults(), rule->results)) {
    Axes combined = through;
    llvm::append_range(combined, axes.combined(*rule, tensor));
    produce(result, toSharding(axes.project(tensor), std::move(combined)));
  }
}

/// Reshards a result from the sharding in which it was produced to that which its users expect.
void ReshardInsertion::produce(OpResult result, const TensorSharding &produced) {
  TensorSharding *sharding = state.find(result);
  if (!sharding)
    return;
  actual[result] = produced;
  if (sameAxes(*sharding, produced))
    return;
  TensorSharding promised = *sharding;
  warnings.note(result, produced, promised, result.getOwner());
  OpBuilder builder(result.getContext());
  builder.setInsertionPointAfter(result.getOwner());
  auto completed = dist::ReshardOp::create(builder, result.getLoc(), result, promised.toAttr(result.getContext()),
                                           reasonOfResult(result.getOwner(), produced, promised));
  result.replaceAllUsesExcept(completed, completed);
  *state.find(completed) = promised;
}
