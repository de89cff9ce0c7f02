//===- VerifyLocal.cpp - Verifier of the program after phase `local`
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Dist/DistOps.h"
#include "dialects/Graph/GraphOps.h"
#include "dialects/Stage/StageOps.h"
#include "passes/Analysis/PhaseRules.h"
#include "passes/Analysis/Roles.h"
#include "passes/Local/Passes.h"

using namespace mlir;
using namespace bowline;

/// A stash, which a rank keeps between functions of a timeline, concerns no other rank and no caller.
static bool isStash(Operation *op) {
  auto state = dyn_cast<graph::StateOp>(op);
  return state && state.isStash();
}

/// Tensors that others feed and save keep shardings: variables and arguments, which also have their global shape.
static LogicalResult verifyTensorsOfRank(Operation *op) {
  using dist::DistDialect;
  constexpr Phase phase = Phase::Local;
  if (!hasSeveralRanks(op))
    return success();
  if (isa<stage::CrossesStages>(op))
    return refuse(op, phase, "the program of each rank sends and receives; run split-stages");
  if (isInDialect(op, "dist") && !isa<dist::MeshOp>(op) && !isStrategy(op) && !isCommunication(op))
    return refuse(op, phase, "ranks exchange contiguous memory, along the first dimension; run lower-collectives");
  if (op->hasAttr(DistDialect::kShardingsAttr))
    return refuse(op, phase, "its results are still global tensors; run global-to-local");
  if (auto function = dyn_cast<graph::FuncOp>(op))
    for (StringRef attribute : {DistDialect::kShardingAttr, DistDialect::kGlobalShapeAttr})
      if (std::optional<unsigned> index = findArgumentWithout(function, attribute))
        return op->emitOpError("argument '")
               << function.getArgName(*index) << "' has no '" << attribute << "' after phase '" << nameOf(phase) << "'";
  bool isVariable = isa<graph::Variable>(op) && !isStash(op);
  for (StringRef attribute : {DistDialect::kShardingAttr, DistDialect::kGlobalShapeAttr})
    if (op->hasAttr(attribute) != isVariable)
      return op->emitOpError() << (isVariable ? "has no '" : "must not have '") << attribute << "' after phase '"
                               << nameOf(phase) << "'";
  return success();
}

LogicalResult bowline::verifyLocal(ModuleOp module) {
  return success(succeeded(verifyAll(module, verifyTensorsOfRank)) && succeeded(verifyRoles(module)) &&
                 succeeded(verifyEntriesOfRoles(module)));
}
