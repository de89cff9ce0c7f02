//===- Phase.cpp - The phases of a compilation
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Program/Phase.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace bowline;

static constexpr PhaseInfo kPhases[] = {
    {Phase::Input, "input", "frontends/hf", "the model as its frontend wrote it: functions on global tensors"},
    {Phase::Graph, "graph", "passes/Import", "canonical form, with the entries that a caller may run"},
    {Phase::Train, "train", "passes/Training", "backward pass, optimizer and initialisation are part of the program"},
    {Phase::Shard, "shard", "passes/Sharding", "every tensor has a sharding; on one rank there is nothing to do"},
    {Phase::Local, "local", "passes/Local", "tensors have the shapes that one rank holds, and ranks exchange them"},
    {Phase::Fuse, "fuse", "passes/Fusion", "every computation is a call of a kernel"},
    {Phase::Schedule, "schedule", "passes/Scheduling", "programs of commands on buffers"},
    {Phase::Codegen, "codegen", "compiler/Codegen", "kernels have code"},
    {Phase::Hoist, "hoist", "passes/Hoisting", "no command runs more often than its results change"},
    {Phase::Overlap, "overlap", "passes/Overlap", "commands have streams, an order and events"},
    {Phase::Memory, "memory", "passes/Memory", "every buffer has its place in the arena"},
    {Phase::Plan, "plan", "compiler/Emit", "the plan file"},
};

llvm::ArrayRef<PhaseInfo> bowline::allPhases() { return kPhases; }

llvm::StringRef bowline::nameOf(Phase phase) { return kPhases[static_cast<size_t>(phase)].name; }

std::optional<Phase> bowline::phaseNamed(llvm::StringRef name) {
  for (const PhaseInfo &info : kPhases)
    if (info.name == name)
      return info.phase;
  return std::nullopt;
}

std::string bowline::replacementOf(llvm::StringRef name) {
  return name == "stage" ? "shard (stages are marked in train, and divided in local)" : "";
}

Phase bowline::phaseBefore(Phase phase) {
  return phase == Phase::Input ? phase : static_cast<Phase>(static_cast<int>(phase) - 1);
}

static ModuleOp outermost(ModuleOp module) {
  while (auto parent = module->getParentOfType<ModuleOp>())
    module = parent;
  return module;
}

std::optional<Phase> bowline::phaseOf(ModuleOp module) {
  auto name = outermost(module)->getAttrOfType<StringAttr>(kPhaseAttr);
  return name ? phaseNamed(name.getValue()) : std::nullopt;
}

void bowline::setPhase(ModuleOp module, Phase phase) {
  module->setAttr(kPhaseAttr, StringAttr::get(module.getContext(), nameOf(phase)));
}

LogicalResult bowline::verifyPhaseName(ModuleOp module) {
  Attribute attribute = outermost(module)->getAttr(kPhaseAttr);
  if (!attribute || phaseOf(module))
    return success();
  return module.emitError() << "the module says " << kPhaseAttr << " = " << attribute << ", which is no phase; use "
                            << llvm::join(llvm::map_range(kPhases, [](const PhaseInfo &info) { return info.name; }),
                                          ", ");
}
