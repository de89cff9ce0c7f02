//===- ImportPlan.cpp - From the plan file to the plan dialect
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Emit/EmitPlan.h"
#include "compiler/Emit/ImportRole.h"
#include "dialects/Stage/StageOps.h"

using namespace mlir;
using namespace bowline;

namespace {

class Importer {
public:
  Importer(MLIRContext *context, const fbs::PlanT &plan) : plan(plan), builder(context) {}

  OwningOpRef<ModuleOp> run() {
    OwningOpRef<ModuleOp> module = ModuleOp::create(
        builder.getUnknownLoc(), plan.name.empty() ? std::nullopt : std::optional<StringRef>(plan.name));
    builder.setInsertionPointToEnd(module->getBody());
    importHeader(*module);
    importMesh();
    if (plan.roles.size() > 1)
      (*module)->setAttr(stage::StageDialect::kAxisAttr, builder.getStringAttr(plan.mesh[plan.role_axis]->name));
    if (failed(plan.roles.empty() ? importRole(0, std::nullopt, plan.arena_bytes) : importRoles()))
      return {};
    for (const auto &attachment : plan.attachments)
      plan::AttachmentOp::create(builder, builder.getUnknownLoc(), attachment->name, attachment->text);
    return module;
  }

private:
  void importHeader(ModuleOp module) {
    MLIRContext *context = builder.getContext();
    const fbs::TargetT &target = *plan.target;
    module->setAttr(plan::PlanDialect::kTargetAttr,
                    plan::TargetAttr::get(context, target.device, target.arch, target.cpu, target.threads));
    module->setAttr(plan::PlanDialect::kSeedAttr, builder.getI64IntegerAttr(plan.seed));
    module->setAttr(plan::PlanDialect::kCompilerAttr, builder.getStringAttr(plan.compiler));
  }

  /// Imports the mesh of all roles.
  void importMesh() {
    if (plan.mesh.empty())
      return;
    SmallVector<StringRef> names;
    SmallVector<int64_t> sizes;
    for (const auto &axis : plan.mesh) {
      names.push_back(axis->name);
      sizes.push_back(axis->size);
    }
    dist::MeshOp::create(builder, builder.getUnknownLoc(), "mesh", builder.getStrArrayAttr(names), sizes);
  }

  LogicalResult importRoles() {
    for (auto [index, role] : llvm::enumerate(plan.roles))
      if (failed(importRole(static_cast<uint32_t>(index), StringRef(role->name), role->arena_bytes)))
        return failure();
    return success();
  }

  LogicalResult importRole(uint32_t index, std::optional<StringRef> name, uint64_t arenaBytes) {
    ModuleOp module = ModuleOp::create(builder, builder.getUnknownLoc(), name);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(module.getBody());
    return bowline::importRole(plan, builder, index, module, arenaBytes);
  }

  const fbs::PlanT &plan;
  OpBuilder builder;
};

} // namespace

OwningOpRef<ModuleOp> bowline::importPlan(MLIRContext *context, const fbs::PlanT &plan) {
  return Importer(context, plan).run();
}
