//===- KernelBodies.h - Functions of generated kernels, kept after their code is there -*- C++ -*-===//
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_INTERP_KERNELBODIES_H
#define BOWLINE_COMPILER_INTERP_KERNELBODIES_H

#include "dialects/Plan/PlanOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

#include <map>
#include <memory>
#include <string>

namespace bowline {

/// Code generation replaces the function of a kernel by a symbol of an image. This class keeps the functions, so that
/// programs can still be interpreted: tests of code generation compare the code of a kernel with its function.
class KernelBodies {
public:
  /// Keeps the kernels of a module and of the modules in it. Must be called with every state of a program, in order.
  void learn(mlir::ModuleOp module);

  /// The function of a kernel of a module that was learned; null where there was none.
  mlir::func::FuncOp of(plan::KernelOp kernel) const;

private:
  /// The name of the kernel's module, then that of the kernel or of the symbol.
  using Name = std::pair<std::string, std::string>;
  using Body = std::shared_ptr<mlir::OwningOpRef<mlir::func::FuncOp>>;
  void learnKernels(mlir::ModuleOp module);

  std::map<Name, Body> byKernel, bySymbol;
};

} // namespace bowline

#endif // BOWLINE_COMPILER_INTERP_KERNELBODIES_H
