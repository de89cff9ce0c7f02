//===- FunctionSharding.cpp - A function works on shards of the variables that ranks divide
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Local/Zero/FunctionSharding.h"
#include "dialects/Stage/StageOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "passes/Analysis/DimensionClasses.h"
#include "passes/Analysis/ShardingState.h"

using namespace mlir;
using namespace bowline;
using dist::DistDialect;

static bool isScalar(Value value) { return graph::tensorType(value).getRank() == 0; }

/// A sum over dimensions of its only operand.
static bool isSum(Operation *op) {
  return op->getNumOperands() == 1 && op->getNumResults() == 1 && isAdditive(op) && reduces(op);
}

FunctionSharding::FunctionSharding(graph::FuncOp function, const FlatShards &shards, const SymbolTable &symbols,
                                   const Variables &variables, int64_t prefetch)
    : function(function), shards(shards), symbols(symbols), variables(variables), prefetch(prefetch),
      uniform(function, shards.getAxis(), symbols) {}

LogicalResult FunctionSharding::run() {
  if (failed(findShards()))
    return failure();
  SmallVector<Operation *> ops = llvm::map_to_vector(function.getBody().front(), [](Operation &op) { return &op; });
  for (auto [position, op] : llvm::enumerate(ops)) {
    rewrite(op);
    if (llvm::any_of(op->getResults(), [&](Value result) { return divided.contains(result); }))
      continue;
    for (OpOperand &operand : op->getOpOperands())
      if (divided.contains(operand.get()))
        demands[operand.get()].push_back({operand.get(), &operand, static_cast<int64_t>(position)});
  }
  gatherAll();
  for (Operation *op : llvm::reverse(replaced))
    op->erase();
  return success();
}

//===----------------------------------------------------------------------===//
// Choice of the values that become shards
//===----------------------------------------------------------------------===//

const ShardedVariable *FunctionSharding::lookup(StringRef variable) const {
  auto it = variables.find(variable);
  return it == variables.end() ? nullptr : &it->second;
}

/// Whether a shard of the result follows from shards of the operands: one shape, and every rank computes the same.
bool FunctionSharding::isElementwise(Operation *op) const {
  if (!op->hasTrait<OpTrait::Elementwise>() || op->getNumResults() != 1 || isScalar(op->getResult(0)))
    return false;
  ArrayRef<int64_t> shape = graph::tensorType(op->getResult(0)).getShape();
  if (!llvm::all_of(op->getOperands(), [&](Value operand) {
        return graph::tensorType(operand).getShape() == shape && uniform.contains(operand);
      }))
    return false;
  // A gather of the narrow value moves fewer bytes than one of the wide value.
  return !isa<arith::ExtFOp>(op) || llvm::any_of(op->getUsers(), [&](Operation *user) {
    return user->hasTrait<OpTrait::Elementwise>() && graph::tensorType(user->getResult(0)).getShape() == shape;
  });
}

bool FunctionSharding::isSummandAccumulator(Operation *op) const {
  auto read = dyn_cast<graph::ReadOp>(op);
  auto state = !read ? graph::StateOp() : symbols.lookup<graph::StateOp>(read.getVariable());
  return state && state.isAccumulator() && state.getTensorType().getRank() > 0 &&
         isSummedAlong(state->getAttrOfType<dist::ShardingAttr>(DistDialect::kShardingAttr), shards.getAxis());
}

/// Whether \p all completes, along the axis, sums of the gradients that accumulators hold.
bool FunctionSharding::isGradientSum(dist::AllReduceOp all) const {
  return all.getKind() == dist::ReduceKind::Sum && llvm::is_contained(all.getAxes(), shards.getAxis()) &&
         gradients.contains(all.getInput());
}

LogicalResult FunctionSharding::classify(Operation *op) {
  auto has = [&](const llvm::DenseSet<Value> &set) {
    return llvm::any_of(op->getOperands(), [&](Value operand) { return set.contains(operand); });
  };
  bool isSum = isa<arith::AddFOp, stage::TransferOp>(op);
  if (isSummandAccumulator(op) || (isSum && has(gradients)))
    gradients.insert(op->getResult(0));
  if (auto read = dyn_cast<graph::ReadOp>(op)) {
    if (const ShardedVariable *variable = lookup(read.getVariable()))
      (variable->isSummand ? summands : divided).insert(read);
    return success();
  }
  if (auto write = dyn_cast<graph::WriteOp>(op)) {
    const ShardedVariable *variable = lookup(write.getVariable());
    if (!has(summands) || (variable && variable->isSummand))
      return success();
  }
  auto all = dyn_cast<dist::AllReduceOp>(op);
  if (all && isGradientSum(all)) {
    divided.insert(all);
    return success();
  }
  if (has(summands)) {
    if (!isSum)
      return op->emitOpError("uses the summands of a sum over ")
             << shards.getAxis() << " that ZeRO divides; only additions and all-reduces can be divided with them. Use "
             << "level 1";
    summands.insert(op->getResult(0));
  } else if (has(divided) && isElementwise(op)) {
    divided.insert(op->getResult(0));
  }
  return success();
}

LogicalResult FunctionSharding::findShards() {
  for (Operation &op : function.getBody().front())
    if (failed(classify(&op)))
      return failure();
  findWanted();
  return success();
}

/// Finds the values that shards are computed with and that can be computed on shards too.
void FunctionSharding::findWanted() {
  SmallVector<Operation *> work;
  auto want = [&](Value value) {
    Operation *op = value.getDefiningOp();
    if (!op || divided.contains(value) || wanted.contains(value) || !isElementwise(op))
      return;
    wanted.insert(value);
    work.push_back(op);
  };
  for (Operation &op : function.getBody().front()) {
    auto write = dyn_cast<graph::WriteOp>(op);
    const ShardedVariable *variable = write ? lookup(write.getVariable()) : nullptr;
    if (variable && !variable->isSummand)
      want(write.getValue());
    else if (op.getNumResults() == 1 && divided.contains(op.getResult(0)) && !isa<graph::ReadOp, dist::AllReduceOp>(op))
      llvm::for_each(op.getOperands(), want);
  }
  while (!work.empty())
    llvm::for_each(work.pop_back_val()->getOperands(), want);
}

//===----------------------------------------------------------------------===//
// Making them
//===----------------------------------------------------------------------===//

void FunctionSharding::setShard(Value whole, Value shard, bool isZeroPadded) {
  shardOfValue[whole] = shard;
  if (isZeroPadded || !shards.isPadded(graph::tensorType(whole)))
    zeroPadded.insert(shard);
}

Value FunctionSharding::splat(DenseElementsAttr value, Location location) {
  OpBuilder builder = OpBuilder::atBlockBegin(&function.getBody().front());
  return arith::ConstantOp::create(builder, location,
                                   value.resizeSplat(shards.shardOf(cast<RankedTensorType>(value.getType()))));
}

/// This rank's shard of a value that all ranks have equal.
Value FunctionSharding::shardOf(Value whole) {
  if (Value shard = shardOfValue.lookup(whole))
    return shard;
  Operation *op = whole.getDefiningOp();
  ImplicitLocOpBuilder builder(whole.getLoc(), whole.getContext());
  builder.setInsertionPointAfterValue(whole);
  DenseElementsAttr constant;
  if (matchPattern(whole, m_Constant(&constant)) && constant.isSplat()) {
    setShard(whole, splat(constant, whole.getLoc()), matchPattern(whole, m_AnyZeroFloat()));
  } else if (op && repeatsScalar(op)) {
    Value shard = builder.clone(*op)->getResult(0);
    shard.setType(shards.shardOf(graph::tensorType(whole)));
    setShard(whole, shard, /*isZeroPadded=*/false);
  } else {
    // By name: no other operation computes each element from nothing but its place in the whole tensor.
    auto random = dyn_cast_or_null<graph::RandomOp>(op);
    Value drawn = random ? shards.draw(builder, random) : Value();
    setShard(whole, drawn ? drawn : shards.slice(builder, whole), /*isZeroPadded=*/true);
  }
  return shardOfValue[whole];
}

/// This rank's shard of the sum of the ranks' summands.
Value FunctionSharding::summandShardOf(Value summand, StringRef why) {
  Value &shard = shardOfSummand[summand];
  if (shard)
    return shard;
  DenseElementsAttr constant;
  if (matchPattern(summand, m_Constant(&constant)) && matchPattern(summand, m_AnyZeroFloat()))
    return shard = splat(constant, summand.getLoc());
  ImplicitLocOpBuilder builder(summand.getLoc(), summand.getContext());
  builder.setInsertionPointAfterValue(summand);
  return shard = shards.reduceScatter(builder, summand, why);
}

void FunctionSharding::rewrite(Operation *op) {
  ImplicitLocOpBuilder builder(op->getLoc(), op);
  if (auto read = dyn_cast<graph::ReadOp>(op)) {
    const ShardedVariable *variable = lookup(read.getVariable());
    if (!variable)
      return;
    Value shard = graph::ReadOp::create(builder, shards.shardOf(variable->whole), read.getVariable());
    if (variable->isSummand)
      shardOfSummand[read] = shard;
    else
      setShard(read, shard, variable->isZeroPadded);
    replaced.insert(op);
  } else if (auto write = dyn_cast<graph::WriteOp>(op)) {
    rewriteWrite(write);
  } else if (auto all = dyn_cast<dist::AllReduceOp>(op); all && divided.contains(all)) {
    rewriteGradientSum(all);
  } else if (op->getNumResults() == 1 && summands.contains(op->getResult(0))) {
    rewriteSummand(op);
  } else if (isSum(op) && divided.contains(op->getOperand(0))) {
    rewriteSum(op);
  } else if (op->getNumResults() == 1 && (divided.contains(op->getResult(0)) || wanted.contains(op->getResult(0)))) {
    rewriteElementwise(op);
  }
}

void FunctionSharding::rewriteSummand(Operation *op) {
  std::string why = "apply-zero: each rank adds up a shard";
  for (Value operand : op->getOperands())
    if (auto accumulator = operand.getDefiningOp<graph::ReadOp>())
      why += (" of '" + accumulator.getVariable() + "'").str();
  IRMapping mapping;
  for (Value operand : op->getOperands())
    mapping.map(operand, summandShardOf(operand, why));
  Value shard = OpBuilder(op).clone(*op, mapping)->getResult(0);
  shard.setType(shards.shardOf(graph::tensorType(op->getResult(0))));
  shardOfSummand[op->getResult(0)] = shard;
  replaced.insert(op);
}

void FunctionSharding::rewriteWrite(graph::WriteOp write) {
  const ShardedVariable *variable = lookup(write.getVariable());
  if (!variable)
    return;
  Value value = write.getValue(), shard;
  if (variable->isSummand)
    shard = summandShardOf(value, ("apply-zero: each rank keeps a shard of '" + write.getVariable() + "'").str());
  else
    shard = shardOf(value);
  bool isConstant = matchPattern(value, m_Constant());
  if (!variable->isSummand && !zeroPadded.contains(shard) && (isConstant || variable->isZeroPadded)) {
    ImplicitLocOpBuilder builder(write.getLoc(), write);
    if (!isConstant)
      value = shards.gather(builder, shard, variable->whole.getShape(), "zeros behind the last element");
    shard = shards.slice(builder, value);
  }
  write.getValueMutable().assign(shard);
}

namespace {
/// The padding behind the last element of shards that an elementwise operation reads: zeros, or unknown values.
class ZeroContext final : public graph::PaddingContext {
public:
  ZeroContext(Operation *op, const llvm::DenseSet<Value> &zeroPadded) : op(op), zeroPadded(zeroPadded) {}

  graph::FactorRule::Kind kind() const override { return graph::FactorRule::Kind::Parallel; }
  std::optional<int64_t> dimOfOperand(unsigned) const override { return 0; }
  std::optional<int64_t> dimOfResult(unsigned) const override { return 0; }
  Number numberIn(unsigned operand) const override {
    return zeroPadded.contains(op->getOperand(operand)) ? Number(0.0) : std::nullopt;
  }
  void require(unsigned, double) override { llvm_unreachable("nothing is required of a shard"); }

private:
  Operation *op;
  const llvm::DenseSet<Value> &zeroPadded;
};
} // namespace

/// Whether zeros give zeros.
bool FunctionSharding::keepsZeros(Operation *op) const {
  auto model = dyn_cast<graph::PaddingModel>(op);
  return model && model.resultPadding(ZeroContext(op, zeroPadded), 0) == 0.0;
}

void FunctionSharding::rewriteElementwise(Operation *op) {
  IRMapping mapping;
  for (Value operand : op->getOperands())
    mapping.map(operand, shardOf(operand));
  Operation *clone = OpBuilder(op).clone(*op, mapping);
  clone->getResult(0).setType(shards.shardOf(graph::tensorType(op->getResult(0))));
  setShard(op->getResult(0), clone->getResult(0), keepsZeros(clone));
  if (divided.contains(op->getResult(0)))
    replaced.insert(op);
}

void FunctionSharding::rewriteGradientSum(dist::AllReduceOp all) {
  ImplicitLocOpBuilder builder(all.getLoc(), all);
  Value shard = shardOfSummand.lookup(all.getInput());
  if (!shard)
    shard = shards.reduceScatter(builder, all.getInput(), all.getWhy());
  SmallVector<Attribute> others =
      llvm::filter_to_vector(all.getAxes(), [&](Attribute axis) { return axis != shards.getAxis(); });
  if (!others.empty())
    shard = dist::AllReduceOp::create(builder, shard.getType(), all.getKind(), shard, builder.getArrayAttr(others),
                                      all.getWhy());
  setShard(all, shard, /*isZeroPadded=*/true);
  replaced.insert(all);
}

/// A sum over all dimensions, perhaps by several operations: first over the shard, then over the ranks.
bool FunctionSharding::rewriteSum(Operation *sum) {
  Value shard = shardOf(sum->getOperand(0));
  SmallVector<Operation *> chain = {sum};
  while (!isScalar(chain.back()->getResult(0))) {
    Operation *last = chain.back();
    if (!last->hasOneUse() || !isSum(*last->user_begin()))
      return false;
    chain.push_back(*last->user_begin());
  }
  if (!zeroPadded.contains(shard))
    return false;
  ImplicitLocOpBuilder builder(sum->getLoc(), chain.back());
  Value part = graph::ReduceOp::create(builder, graph::ReduceKind::Sum, shard, ArrayRef<int64_t>{0});
  Value total =
      dist::AllReduceOp::create(builder, part.getType(), dist::ReduceKind::Sum, part,
                                builder.getArrayAttr({shards.getAxis()}), "apply-zero: each rank adds up its shard");
  chain.back()->getResult(0).replaceAllUsesWith(total);
  replaced.insert_range(chain);
  return true;
}

//===----------------------------------------------------------------------===//
// Whole tensors again
//===----------------------------------------------------------------------===//

StringRef FunctionSharding::parameterOf(Value whole) const {
  while (auto cast = whole.getDefiningOp<arith::TruncFOp>())
    whole = cast.getIn();
  auto read = whole.getDefiningOp<graph::ReadOp>();
  const ShardedVariable *variable = read ? lookup(read.getVariable()) : nullptr;
  return variable && variable->isParameter ? read.getVariable() : "";
}

void FunctionSharding::gatherAll() {
  SmallVector<Demand> ofParameters;
  for (auto &[whole, own] : demands) {
    // Operations that were replaced need nothing.
    llvm::erase_if(own, [&](const Demand &demand) { return replaced.contains(demand.operand->getOwner()); });
    if (!parameterOf(whole).empty())
      llvm::append_range(ofParameters, own);
  }
  llvm::sort(ofParameters, [](const Demand &a, const Demand &b) { return a.position < b.position; });
  for (auto &[whole, own] : demands) {
    if (own.empty())
      continue;
    if (parameterOf(whole).empty())
      gather(whole, own, 0);
    else
      gatherParameter(whole, own, ofParameters);
  }
}

/// Uses share a gather unless another parameter is used between them.
void FunctionSharding::gatherParameter(Value whole, ArrayRef<Demand> own, ArrayRef<Demand> ofAll) {
  auto isInterrupted = [&](int64_t first, int64_t second) {
    auto from = llvm::upper_bound(ofAll, first, [](int64_t at, const Demand &demand) { return at < demand.position; });
    for (; from != ofAll.end() && from->position < second; ++from)
      if (from->whole != whole)
        return true;
    return false;
  };
  int64_t repetition = 0;
  while (!own.empty()) {
    size_t count = 1;
    while (count < own.size() && !isInterrupted(own[count - 1].position, own[count].position))
      ++count;
    gather(whole, own.take_front(count), repetition++);
    own = own.drop_front(count);
  }
}

void FunctionSharding::gather(Value whole, ArrayRef<Demand> own, int64_t repetition) {
  Operation *user = own.front().operand->getOwner();
  Value shard = shardOf(whole);
  StringRef parameter = parameterOf(whole);
  ImplicitLocOpBuilder builder(user->getLoc(), user);
  std::string why = ("apply-zero: '" + parameter + "', of which each rank has a shard").str();
  if (parameter.empty()) {
    builder.setInsertionPointAfterValue(shard);
    builder.setLoc(shard.getLoc());
    auto write = dyn_cast<graph::WriteOp>(user);
    why = write ? ("apply-zero: the new value of '" + write.getVariable() + "'").str()
                : "apply-zero: all shards are needed";
  }
  dist::AllGatherOp collective;
  Value gathered = shards.gather(builder, shard, graph::tensorType(whole).getShape(), why, &collective);
  if (!parameter.empty())
    collective->setAttr(DistDialect::kPrefetchAttr, builder.getI64IntegerAttr(prefetch));
  if (repetition > 0)
    collective->setAttr(DistDialect::kRepetitionAttr, builder.getI64IntegerAttr(repetition));
  for (const Demand &demand : own)
    demand.operand->set(gathered);
}
