//===- Epilogue.h - Epilogue of a matrix product, on one tile of it
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_CODEGEN_CPU_EPILOGUE_H
#define BOWLINE_COMPILER_CODEGEN_CPU_EPILOGUE_H

#include "compiler/Codegen/Nests/Nest.h"
#include "compiler/Codegen/TargetCpu.h"
#include "mlir/IR/BuiltinOps.h"

namespace bowline::codegen {

/// Fails unless the body, before its layers are decomposed, has the form that CpuCodegen::addEpilogue describes.
llvm::LogicalResult checkEpilogue(mlir::func::FuncOp epilogue);

/// Returns a nest over the rows and columns of the product.
llvm::FailureOr<std::unique_ptr<Nest>> planEpilogue(mlir::func::FuncOp epilogue);

/// Appends to `module` the function `symbol(arguments, tile, stride, m0, m1, n0, n1)`.
llvm::LogicalResult emitEpilogue(mlir::ModuleOp module, llvm::StringRef symbol, mlir::func::FuncOp epilogue,
                                 const Nest &nest, const TargetCpu &cpu);

/// Returns the (output, argument) pairs that may be the same memory.
llvm::SmallVector<std::pair<int, int>> findEpiloguePairs(mlir::func::FuncOp epilogue);

} // namespace bowline::codegen

#endif // BOWLINE_COMPILER_CODEGEN_CPU_EPILOGUE_H
