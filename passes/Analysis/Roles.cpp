//===- Roles.cpp - The programs of the ranks, each in a module of its own
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Analysis/Roles.h"
#include "dialects/Dist/DistOps.h"
#include "dialects/Plan/PlanOps.h"

using namespace mlir;
using namespace bowline;

bool bowline::isForAllRoles(Operation *op) { return isa<dist::MeshOp, dist::StrategyOp, plan::AttachmentOp>(op); }

bool bowline::isOnlyRole(ModuleOp role) { return !role->getParentOp() || !role.getSymName(); }

bool bowline::nestProgram(ModuleOp module) {
  if (!module.getOps<ModuleOp>().empty())
    return false;
  ModuleOp role = ModuleOp::create(module.getLoc());
  for (Operation &op : llvm::make_early_inc_range(*module.getBody()))
    if (!isForAllRoles(&op))
      op.moveBefore(role.getBody(), role.getBody()->end());
  module.getBody()->push_back(role);
  return true;
}

static constexpr StringLiteral kWhatToDo("after phase 'local' each role's program is in a nested module, also where "
                                         "there is only one; write 'module { ... }' "
                                         "around it, with its plan.arena_bytes where it has that, and leave dist.mesh, "
                                         "dist.strategy and plan.attachment outside");

LogicalResult bowline::verifyRoles(ModuleOp module) {
  for (Operation &op : *module.getBody())
    if (!isa<ModuleOp>(op) && !isForAllRoles(&op))
      return op.emitOpError() << "is in no role: " << kWhatToDo;
  if (module.getOps<ModuleOp>().empty())
    return module.emitError() << "the module has no role: " << kWhatToDo;
  return success();
}

RoleCopy::RoleCopy(ModuleOp role) {
  auto around = role->getParentOfType<ModuleOp>();
  if (!around) {
    outermost = role.clone();
    copy = *outermost;
    return;
  }
  outermost = ModuleOp::create(around.getLoc());
  (*outermost)->setAttrs(around->getAttrDictionary());
  for (Operation &op : *around.getBody())
    if (&op == role.getOperation() || isForAllRoles(&op))
      outermost->getBody()->push_back(op.clone());
  copy = *outermost->getOps<ModuleOp>().begin();
}
