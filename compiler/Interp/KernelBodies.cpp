//===- KernelBodies.cpp - Functions of generated kernels, kept after their code is there
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Interp/KernelBodies.h"
#include "compiler/Interp/ConstantEvaluation.h"

using namespace mlir;
using namespace bowline;

/// The name of a role; a module around roles, or without any, has none.
static std::string nameOf(ModuleOp module) {
  return module->getParentOp() ? module.getSymName().value_or("").str() : std::string();
}

void KernelBodies::learnKernels(ModuleOp module) {
  SymbolTable symbols(module);
  for (auto kernel : module.getOps<plan::KernelOp>()) {
    Name name(nameOf(module), kernel.getName().str());
    if (kernel.getBody()) {
      auto function = symbols.lookup<func::FuncOp>(*kernel.getBody());
      if (!function)
        continue;
      auto body = std::make_shared<OwningOpRef<func::FuncOp>>(function.clone());
      evaluateConstants(**body);
      byKernel[name] = std::move(body);
    } else if (kernel.getSymbol()) {
      // Passes may clone kernels with their symbols, and give the clone another name.
      auto known = byKernel.find(name);
      if (known != byKernel.end())
        bySymbol.try_emplace({name.first, kernel.getSymbol()->str()}, known->second);
    }
  }
}

void KernelBodies::learn(ModuleOp module) {
  module.walk([&](ModuleOp each) { learnKernels(each); });
}

func::FuncOp KernelBodies::of(plan::KernelOp kernel) const {
  std::string module = nameOf(kernel->getParentOfType<ModuleOp>());
  auto found = byKernel.end();
  if (kernel.getBody())
    found = byKernel.find({module, kernel.getName().str()});
  else if (kernel.getSymbol())
    if (auto it = bySymbol.find({module, kernel.getSymbol()->str()}); it != bySymbol.end())
      return **it->second;
  return found == byKernel.end() ? func::FuncOp() : **found->second;
}
