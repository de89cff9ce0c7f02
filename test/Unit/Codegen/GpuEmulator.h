//===- GpuEmulator.h - Generated kernels for GPUs, run on this processor
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_TEST_UNIT_CODEGEN_GPUEMULATOR_H
#define BOWLINE_TEST_UNIT_CODEGEN_GPUEMULATOR_H

#include <memory>
#include <string>
#include <vector>

#include "compiler/Codegen/KernelCodegen.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace bowline::test {

/// A kernel for GPUs, compiled for this processor (EmulatedCode.h) and loaded.
class EmulatedKernel {
public:
  /// Adds a test failure where the kernel does not compile.
  explicit EmulatedKernel(mlir::func::FuncOp kernel);
  EmulatedKernel(const EmulatedKernel &) = delete;
  EmulatedKernel &operator=(const EmulatedKernel &) = delete;
  ~EmulatedKernel();

  bool isLoaded() const { return handle != nullptr; }
  const KernelInfo &info() const { return kernelInfo; }

  /// `arguments` are the addresses of inputs and outputs. Adds a test failure where threads wait for ever.
  void run(const std::vector<void *> &arguments, uint64_t seed) const;

private:
  KernelInfo kernelInfo;
  bool hasBarriers = false;
  void *handle = nullptr;
  int file = -1;
};

} // namespace bowline::test

#endif // BOWLINE_TEST_UNIT_CODEGEN_GPUEMULATOR_H
