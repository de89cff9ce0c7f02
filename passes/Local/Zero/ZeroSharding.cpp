//===- ZeroSharding.cpp - Ranks divide states, gradients and parameters instead of keeping copies
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Local/Zero/ZeroSharding.h"
#include "passes/Local/Zero/RoundedCopies.h"

using namespace mlir;
using namespace bowline;
using dist::DistDialect;

static dist::ShardingAttr shardingOf(Operation *variable) {
  return variable->getAttrOfType<dist::ShardingAttr>(DistDialect::kShardingAttr);
}

static bool isGradient(graph::StateOp state) {
  return state.isAccumulator() && state.getOf() && state.getTensorType().getRank() > 0;
}

/// A state that the optimizer keeps for a parameter beside its value.
static bool isMoment(graph::StateOp state) { return state.isPersistent() && state.getOf(); }

LogicalResult ZeroSharding::run() {
  if (shards.getCount() == 1)
    return success();
  if (failed(checkAxis()))
    return failure();
  chooseVariables();
  // Functions are read while the attributes of variables still describe the variables before ZeRO.
  for (auto function : module.getOps<graph::FuncOp>())
    if (failed(FunctionSharding(function, shards, symbols, variables, prefetch).run()))
      return failure();
  for (const auto &[name, variable] : variables)
    divide(symbols.lookup(name), variable);
  return success();
}

LogicalResult ZeroSharding::checkAxis() {
  llvm::SmallSetVector<Attribute, 4> axes;
  bool any = false;
  for (auto state : module.getOps<graph::StateOp>()) {
    if (!isGradient(state))
      continue;
    any = true;
    if (dist::ShardingAttr sharding = shardingOf(state))
      axes.insert_range(sharding.getUnreduced());
  }
  if (!any || axes.contains(shards.getAxis()))
    return success();
  InFlightDiagnostic diagnostic = emitError(line, "ZeRO divides along ")
                                  << shards.getAxis() << ", but no gradient is summed over it";
  if (!axes.empty())
    diagnostic << "; the axes of which that is true are ";
  llvm::interleaveComma(axes, diagnostic);
  return diagnostic;
}

void ZeroSharding::chooseVariables() {
  llvm::StringSet<> rounded;
  if (level < 3) // else parameters are rounded before each gather
    rounded = RoundedCopies(module, symbols).run([&](graph::ParamOp param) {
      return param.getTensorType().getRank() == 0 || isShardedAlong(shardingOf(param), shards.getAxis());
    });
  for (Operation &op : *module.getBody()) {
    dist::ShardingAttr sharding = shardingOf(&op);
    bool isSharded = isShardedAlong(sharding, shards.getAxis()), isSummand = isSummedAlong(sharding, shards.getAxis());
    auto param = dyn_cast<graph::ParamOp>(op);
    bool isDivided = param && level >= 3 && !isSharded && param.getTensorType().getRank() > 0;
    if (isDivided || (param && rounded.contains(param.getName())))
      variables[param.getName()] = {param.getTensorType(), /*isSummand=*/false, /*isParameter=*/level >= 3};
    auto state = dyn_cast<graph::StateOp>(op);
    if (!state || isSharded || state.getTensorType().getRank() == 0)
      continue;
    if ((isMoment(state) && !isSummand) || (level >= 2 && isGradient(state)))
      variables[state.getName()] = {state.getTensorType(), isSummand, /*isParameter=*/false,
                                    /*isZeroPadded=*/isGradient(state)};
  }
}

void ZeroSharding::divide(Operation *variable, const ShardedVariable &sharded) {
  MLIRContext *context = variable->getContext();
  variable->setAttr("type", TypeAttr::get(shards.shardOf(sharded.whole)));
  variable->setAttr(DistDialect::kFlatAxesAttr, ArrayAttr::get(context, {shards.getAxis()}));
  variable->setAttr(DistDialect::kFlatShapeAttr, DenseI64ArrayAttr::get(context, sharded.whole.getShape()));
  if (!sharded.isSummand)
    return;
  dist::ShardingAttr sharding = shardingOf(variable);
  SmallVector<StringAttr> others =
      llvm::filter_to_vector(sharding.getUnreduced(), [&](StringAttr axis) { return axis != shards.getAxis(); });
  variable->setAttr(DistDialect::kShardingAttr, sharding.withUnreduced(others));
}
