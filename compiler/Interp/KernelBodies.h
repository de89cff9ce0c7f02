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

/// Keeps the functions of kernels, which code generation replaces by symbols of an image, so that programs can still be
/// interpreted afterwards. Tests of code generation compare the code of a kernel with its function.
class KernelBodies {
public:
  /// Records the kernels of a module and of modules in it. Call it after every change of a program, in order.
  void learn(mlir::ModuleOp module);

  /// Returns the function of a kernel in a learned module; null if the kernel had none.
  mlir::func::FuncOp of(plan::KernelOp kernel) const;

private:
  /// The name of the kernel's module, and the name of the kernel or of its symbol.
  using Name = std::pair<std::string, std::string>;
  using Body = std::shared_ptr<mlir::OwningOpRef<mlir::func::FuncOp>>;
  void learnKernels(mlir::ModuleOp module);

  std::map<Name, Body> byKernel, bySymbol;
};

} // namespace bowline

#endif // BOWLINE_COMPILER_INTERP_KERNELBODIES_H
