//===- ImportPlan.cpp - From the plan file to the plan dialect
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Emit/EmitPlan.h"
#include "compiler/Emit/ImportRole.h"

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
    if (failed(plan.roles.empty() ? importRole(plan, builder, 0, *module, plan.arena_bytes) : importRoles(*module)))
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

  LogicalResult importRoles(ModuleOp top) {
    if (plan.roles.size() > 1)
      top->setAttr(plan::PlanDialect::kRoleAxisAttr, builder.getStringAttr(plan.mesh[plan.role_axis]->name));
    for (auto [index, role] : llvm::enumerate(plan.roles)) {
      ModuleOp module = ModuleOp::create(builder, builder.getUnknownLoc(), role->name);
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToEnd(module.getBody());
      if (failed(importRole(plan, builder, static_cast<uint32_t>(index), module, role->arena_bytes)))
        return failure();
    }
    return success();
  }

  const fbs::PlanT &plan;
  OpBuilder builder;
};

} // namespace

OwningOpRef<ModuleOp> bowline::importPlan(MLIRContext *context, const fbs::PlanT &plan) {
  return Importer(context, plan).run();
}
