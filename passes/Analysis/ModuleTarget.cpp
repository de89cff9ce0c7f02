//===- ModuleTarget.cpp - The target that a module is compiled for
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Analysis/ModuleTarget.h"
#include "dialects/Dist/DistOps.h"

using namespace mlir;
using namespace bowline;

/// The target of the module, or of one around it; null where none states it.
static plan::TargetAttr targetAttrOf(ModuleOp module) {
  for (; module; module = module->getParentOfType<ModuleOp>())
    if (auto target = module->getAttrOfType<plan::TargetAttr>(plan::PlanDialect::kTargetAttr))
      return target;
  return nullptr;
}

FailureOr<ModuleTarget> ModuleTarget::of(ModuleOp module) {
  plan::TargetAttr target = targetAttrOf(module);
  if (!target)
    return ModuleTarget{&targets::DefaultTarget(), ""};
  absl::StatusOr<const targets::Target *> description = targets::FindTarget(target.getDevice());
  if (!description.ok())
    return module.emitError(std::string(description.status().message()))
           << "; '" << plan::PlanDialect::kTargetAttr << "' must name one of these";
  return ModuleTarget{*description, target.getCpu().str(), target.getThreads()};
}

int64_t ModuleTarget::argumentAlignment(plan::KernelOp kernel, unsigned index) const {
  return description->argument_alignment(std::string_view(kernel.getRegistered().value_or("")),
                                         static_cast<kernels::Access>(kernel.getArgument(index).getAccess()));
}

int64_t bowline::deviceAlignment(ModuleOp module) {
  plan::TargetAttr target = targetAttrOf(module);
  absl::StatusOr<const targets::Target *> description =
      target ? targets::FindTarget(target.getDevice()) : &targets::DefaultTarget();
  return (description.ok() ? **description : targets::DefaultTarget()).alignment;
}

FailureOr<targets::CostModel> bowline::costModelOf(ModuleOp module, StringRef links) {
  FailureOr<ModuleTarget> target = ModuleTarget::of(module);
  if (failed(target))
    return failure();
  SmallVector<StringRef> parts;
  links.split(parts, ';', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  std::vector<std::string> texts, axes;
  for (StringRef part : parts)
    texts.push_back(part.str());
  if (dist::MeshOp mesh = dist::MeshOp::of(module))
    for (auto name : mesh.getAxisNames().getAsRange<StringAttr>())
      axes.push_back(name.str());
  absl::StatusOr<targets::LinkTable> table = targets::ParseLinks(texts, axes);
  if (!table.ok())
    return module.emitError() << std::string(table.status().message());
  return targets::CostModel((*target)->costs(target->level), static_cast<double>(target->threads), std::move(*table));
}
