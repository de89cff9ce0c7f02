//===- UniformValues.cpp - Which values are equal on all ranks along an axis
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Local/Zero/UniformValues.h"
#include "dialects/Stage/StageOps.h"

using namespace mlir;
using namespace bowline;
using dist::DistDialect;

bool bowline::isShardedAlong(dist::ShardingAttr sharding, StringAttr axis) {
  return sharding &&
         llvm::any_of(sharding.getDims(), [&](dist::DimAttr dim) { return llvm::is_contained(dim.getAxes(), axis); });
}

bool bowline::isSummedAlong(dist::ShardingAttr sharding, StringAttr axis) {
  return sharding && llvm::is_contained(sharding.getUnreduced(), axis);
}

UniformValues::UniformValues(graph::FuncOp function, StringAttr axis, const SymbolTable &symbols) : axis(axis) {
  for (BlockArgument argument : function.getArguments())
    if (!isShardedAlong(
            function.getArgAttrOfType<dist::ShardingAttr>(argument.getArgNumber(), DistDialect::kShardingAttr), axis))
      uniform.insert(argument);
  for (Operation &op : function.getBody().front())
    if (isUniform(&op, symbols))
      uniform.insert_range(op.getResults());
}

bool UniformValues::isUniform(Operation *op, const SymbolTable &symbols) const {
  if (isa<stage::ReceiveOp>(op))
    return false;
  if (auto read = dyn_cast<graph::ReadOp>(op)) {
    auto state = symbols.lookup<graph::StateOp>(read.getVariable());
    if (state && state.isStash())
      return false;
    auto sharding = symbols.lookup(read.getVariable())->getAttrOfType<dist::ShardingAttr>(DistDialect::kShardingAttr);
    return !isShardedAlong(sharding, axis) && !isSummedAlong(sharding, axis);
  }
  auto axes = op->getAttrOfType<ArrayAttr>("axes");
  bool along = isa_and_present<dist::DistDialect>(op->getDialect()) && axes && llvm::is_contained(axes, axis);
  auto collective = dyn_cast<dist::Collective>(op);
  if (along && collective && collective.getForm().definition().alike)
    return true;
  return !along && op->getNumRegions() == 0 &&
         llvm::all_of(op->getOperands(), [&](Value operand) { return uniform.contains(operand); });
}
