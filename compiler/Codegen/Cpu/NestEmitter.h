//===- NestEmitter.h - Nests as loops over vectors
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_CODEGEN_CPU_NESTEMITTER_H
#define BOWLINE_COMPILER_CODEGEN_CPU_NESTEMITTER_H

#include "compiler/Codegen/Nests/Nest.h"
#include "compiler/Codegen/TargetCpu.h"
#include "mlir/IR/BuiltinOps.h"

namespace bowline::codegen {

/// Appends to `module` the function `symbol(arguments, begin, end)`, as scf loops over vectors. It computes the units
/// [begin, end) of `nests`, which are numbered from nest to nest. `kernel` has the types of the arguments.
llvm::LogicalResult emitKernel(mlir::ModuleOp module, llvm::StringRef symbol, mlir::func::FuncOp kernel,
                               llvm::ArrayRef<std::unique_ptr<Nest>> nests, const TargetCpu &cpu);

} // namespace bowline::codegen

#endif // BOWLINE_COMPILER_CODEGEN_CPU_NESTEMITTER_H
