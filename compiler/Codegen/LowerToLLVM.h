//===- LowerToLLVM.h - Loops over vectors as the LLVM dialect
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_CODEGEN_LOWERTOLLVM_H
#define BOWLINE_COMPILER_CODEGEN_LOWERTOLLVM_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"

namespace bowline::codegen {

/// Registers the dialects that code generation emits, and their translation to LLVM IR.
/// Contexts of kernels need both.
void registerCodegenDialects(mlir::DialectRegistry &registry);

/// Converts the scf, vector, arith and math operations of `module` to the LLVM dialect.
llvm::LogicalResult lowerToLLVM(mlir::ModuleOp module);

} // namespace bowline::codegen

#endif // BOWLINE_COMPILER_CODEGEN_LOWERTOLLVM_H
