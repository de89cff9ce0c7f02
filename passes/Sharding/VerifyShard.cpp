//===- VerifyShard.cpp - Verifier of the program after phase `shard`
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Dist/DistOps.h"
#include "dialects/Graph/GraphOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/Analysis/PhaseRules.h"
#include "passes/Sharding/Passes.h"

using namespace mlir;
using namespace bowline;

/// Variables and arguments say how they are sharded, and operations how their results are; a constant of equal elements
/// is sharded in any way.
static LogicalResult verifySharding(Operation *op) {
  using dist::DistDialect;
  if (!hasSeveralRanks(op))
    return success();
  if (auto function = dyn_cast<graph::FuncOp>(op)) {
    std::optional<unsigned> index = findArgumentWithout(function, DistDialect::kShardingAttr);
    return index ? op->emitOpError("argument '") << function.getArgName(*index) << "' has no sharding after phase '"
                                                 << nameOf(Phase::Shard) << "'"
                 : success();
  }
  bool isVariable = isa<graph::Variable>(op);
  if (isVariable ? op->hasAttr(DistDialect::kShardingAttr)
                 : op->getNumResults() == 0 || isa<dist::ReshardOp>(op) || op->hasAttr(DistDialect::kShardingsAttr))
    return success();
  if (auto constant = dyn_cast<arith::ConstantOp>(op); constant && isa<SplatElementsAttr>(constant.getValue()))
    return success();
  return op->emitOpError() << "has no sharding after phase '" << nameOf(Phase::Shard) << "'";
}

LogicalResult bowline::verifyShard(ModuleOp module) {
  return success(succeeded(verifyAll(module, verifySharding)) && succeeded(verifyEntries(module)));
}
