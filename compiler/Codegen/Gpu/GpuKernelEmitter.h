//===- Gpu/GpuKernelEmitter.h - Nests as threads of a GPU
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_CODEGEN_GPU_GPUKERNELEMITTER_H
#define BOWLINE_COMPILER_CODEGEN_GPU_GPUKERNELEMITTER_H

#include "compiler/Codegen/KernelCodegen.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace bowline::codegen {

/// The code of one kernel and its launch configuration.
struct GpuKernel {
  /// A module with one function, in the dialects that lowerToLLVM takes.
  mlir::OwningOpRef<mlir::ModuleOp> module;
  KernelGrid grid;
  /// Pairs (output index, input index) that may be the same bytes; see KernelInfo.
  llvm::SmallVector<std::pair<int, int>> inPlace;
};

/// Emits `kernel` as a GPU function for a grid and blocks of one dimension:
///
///   kernel void SYMBOL(pointer to each input, then to each output)
///
/// Fails with a diagnostic where an operation is not supported.
llvm::FailureOr<GpuKernel> emitGpuKernel(mlir::func::FuncOp kernel, llvm::StringRef symbol);

} // namespace bowline::codegen

#endif // BOWLINE_COMPILER_CODEGEN_GPU_GPUKERNELEMITTER_H
