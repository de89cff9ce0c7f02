//===- EmitPlan.cpp - From the plan dialect to the plan file
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Emit/EmitPlan.h"
#include "compiler/Emit/EmitRole.h"
#include "dialects/Stage/StageOps.h"
#include "passes/Analysis/Roles.h"

#include <algorithm>

using namespace mlir;
using namespace bowline;

namespace {

class Emitter {
public:
  explicit Emitter(ModuleOp module) : module(module), plan(std::make_unique<fbs::PlanT>()), tables(*plan) {}

  FailureOr<std::unique_ptr<fbs::PlanT>> run() {
    if (failed(emitHeader()) || failed(verifyRoles(module)) || failed(emitRoles()))
      return failure();
    for (auto attachmentOp : module.getOps<plan::AttachmentOp>()) {
      auto attachment = std::make_unique<fbs::AttachmentT>();
      attachment->name = attachmentOp.getName().str();
      attachment->text = attachmentOp.getText().str();
      plan->attachments.push_back(std::move(attachment));
    }
    return std::move(plan);
  }

private:
  LogicalResult emitHeader() {
    auto target = module->getAttrOfType<plan::TargetAttr>(plan::PlanDialect::kTargetAttr);
    if (!target)
      return module.emitError("the module has no '") << plan::PlanDialect::kTargetAttr << "' attribute";
    plan->name = module.getSymName().value_or("").str();
    auto compiler = module->getAttrOfType<StringAttr>(plan::PlanDialect::kCompilerAttr);
    plan->compiler = compiler ? compiler.str() : "bowline";
    plan->target = std::make_unique<fbs::TargetT>();
    plan->target->device = target.getDevice().str();
    plan->target->arch = target.getArch().str();
    plan->target->cpu = target.getCpu().str();
    plan->target->threads = target.getThreads();
    if (auto seed = module->getAttrOfType<IntegerAttr>(plan::PlanDialect::kSeedAttr))
      plan->seed = seed.getInt();
    return success();
  }

  /// Nested modules are the programs of the coordinates along the axis of roles.
  LogicalResult emitRoles() {
    if (dist::MeshOp mesh = dist::MeshOp::of(module))
      tables.addMesh(mesh);
    auto roles = llvm::to_vector(module.getOps<ModuleOp>());
    for (auto [index, role] : llvm::enumerate(roles)) {
      FailureOr<uint64_t> arena = emitRole(role, static_cast<uint16_t>(index), *plan, tables);
      if (failed(arena))
        return failure();
      plan->arena_bytes = std::max(plan->arena_bytes, *arena);
      // One that has no name is the only one, of which the plan has no table.
      if (roles.size() == 1 && !role.getSymName())
        return success();
      plan->roles.push_back(std::make_unique<fbs::RoleT>());
      plan->roles.back()->name = role.getSymName().value_or("").str();
      plan->roles.back()->arena_bytes = *arena;
    }
    // One role needs nothing that tells it apart.
    if (roles.size() > 1)
      plan->role_axis = *tables.findAxis(stage::axisOf(module));
    return success();
  }

  ModuleOp module;
  std::unique_ptr<fbs::PlanT> plan;
  PlanTables tables;
};

} // namespace

FailureOr<std::unique_ptr<fbs::PlanT>> bowline::emitPlan(ModuleOp module) { return Emitter(module).run(); }
