//===- Gpu/GpuCodegen.h - Code for NVIDIA GPUs for regions of graph operations
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_CODEGEN_GPU_GPUCODEGEN_H
#define BOWLINE_COMPILER_CODEGEN_GPU_GPUCODEGEN_H

#include "compiler/Codegen/KernelCodegen.h"

#include <memory>
#include <string>

namespace llvm {
class raw_ostream;
} // namespace llvm

namespace bowline {

struct GpuTarget {
  /// One of `kGpuArchNames`.
  std::string arch = "sm_90a";
  /// If set, receives the IR of every kernel after each stage, then the PTX of all kernels and ptxas's report on each.
  llvm::raw_ostream *dump = nullptr;
  /// If false, kernels are planned, but no machine code is generated.
  bool hasCode = true;
};

/// The names for which `isGpuArch` is true, for messages.
inline constexpr llvm::StringLiteral kGpuArchNames = "sm_80, sm_90a or sm_100";

bool isGpuArch(llvm::StringRef name);

/// Compiles each kernel to
///
///   .entry SYMBOL(pointers to the dense row-major inputs, then to the outputs, multiples of 64)
///
/// with a grid of one dimension. i1 is one byte; bf16 and f16 are storage types as in CpuCodegen. The image is machine
/// code if ptxas is available, and otherwise PTX, which the driver compiles when it loads the image.
class GpuCodegen : public KernelCodegen {
public:
  explicit GpuCodegen(GpuTarget target);
  ~GpuCodegen() override;

  llvm::FailureOr<KernelInfo> add(mlir::func::FuncOp kernel, llvm::StringRef symbol = "") override;
  llvm::FailureOr<KernelInfo> addEpilogue(mlir::func::FuncOp epilogue, llvm::StringRef symbol = "") override;
  llvm::FailureOr<std::vector<char>> finish() override;
  llvm::StringRef imageFormat() const override;

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace bowline

#endif // BOWLINE_COMPILER_CODEGEN_GPU_GPUCODEGEN_H
