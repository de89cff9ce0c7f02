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
#include "dialects/Program/Phase.h"
#include "dialects/Stage/StageOps.h"

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

/// Everything for all roles, or of one role, stands in its place alone: one of two places would be ignored.
static LogicalResult verifyPlaces(ModuleOp module, ArrayRef<ModuleOp> roles) {
  using plan::PlanDialect;
  using stage::StageDialect;
  for (NamedAttribute attribute : module->getAttrs()) {
    StringRef name = attribute.getName();
    if (name.starts_with("plan.") &&
        !llvm::is_contained({PlanDialect::kTargetAttr, PlanDialect::kSeedAttr, PlanDialect::kCompilerAttr}, name))
      return module.emitError("the module around the roles has '")
             << name << "', which belongs to one role; move it to the nested module of that role, or leave it out";
  }
  for (ModuleOp role : roles) {
    for (StringRef name : {PlanDialect::kTargetAttr, PlanDialect::kSeedAttr, PlanDialect::kCompilerAttr,
                           StageDialect::kAxisAttr, StageDialect::kCountAttr, kPhaseAttr})
      if (role->hasAttr(name))
        return role.emitError("the nested module of a role has '")
               << name << "', which is for all roles; write it on the module around them alone";
    for (Operation &op : *role.getBody())
      if (isForAllRoles(&op))
        return op.emitOpError("is for all roles; write it in the module around them alone");
      else if (isa<ModuleOp>(op))
        return op.emitOpError("is a module in the nested module of a role, which holds one program; roles stand beside "
                              "each other in the module around them");
  }
  auto meshes = module.getOps<dist::MeshOp>();
  if (llvm::range_size(meshes) > 1)
    return (*std::next(meshes.begin())).emitOpError("is a second mesh, and all ranks are in one; remove one of them");
  return success();
}

/// Several roles have names, and are the programs of the coordinates along one axis.
static LogicalResult verifyAxis(ModuleOp module, ArrayRef<ModuleOp> roles) {
  constexpr StringLiteral name = stage::StageDialect::kAxisAttr;
  bool isOnly = roles.size() == 1;
  for (auto [index, role] : llvm::enumerate(llvm::to_vector(roles)))
    if (!isOnly && role.getSymName().value_or("").empty())
      return role.emitError("role ") << index << " of " << roles.size() << " has no name; write 'module @stage" << index
                                     << " { ... }'";
  StringAttr axis = stage::axisOf(module);
  if (!axis && isOnly)
    return success();
  if (!axis)
    return module.emitError("nothing says along which axis of the mesh the ranks of the ")
           << roles.size() << " roles lie; name it in '" << name << "' of the module around them";
  dist::MeshOp mesh = dist::MeshOp::of(module);
  if (!mesh || !mesh.getAxis(axis))
    return module.emitError("'") << name << "' is " << axis << ", which is no axis of the module's dist.mesh; name the "
                                 << "axis along which the ranks of the roles lie";
  if (mesh.getSize(axis) != static_cast<int64_t>(roles.size()))
    return module.emitError("'") << name << "' is " << axis << ", of size " << mesh.getSize(axis)
                                 << ", but the number of roles is " << roles.size()
                                 << "; each coordinate along the axis has one role";
  return success();
}

LogicalResult bowline::verifyRoles(ModuleOp module) {
  for (Operation &op : *module.getBody())
    if (!isa<ModuleOp>(op) && !isForAllRoles(&op))
      return op.emitOpError() << "is in no role: " << kWhatToDo;
  auto roles = llvm::to_vector(module.getOps<ModuleOp>());
  if (roles.empty())
    return module.emitError() << "the module has no role: " << kWhatToDo;
  return success(succeeded(verifyPlaces(module, roles)) && succeeded(verifyAxis(module, roles)));
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
