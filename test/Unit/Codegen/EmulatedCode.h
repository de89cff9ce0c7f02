//===- EmulatedCode.h - Generated kernels for GPUs as code of this processor
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_TEST_UNIT_CODEGEN_EMULATEDCODE_H
#define BOWLINE_TEST_UNIT_CODEGEN_EMULATEDCODE_H

#include <memory>
#include <string>

#include "compiler/Codegen/Cpu/ObjectFile.h"
#include "compiler/Codegen/KernelCache.h"
#include "compiler/Codegen/KernelCodegen.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Error.h"

namespace bowline::test {

/// The function that GpuCodegen translates to PTX, compiled for this processor instead, for RunBlocks
/// (test/Support/gpu_blocks).
struct EmulatedCode {
  KernelInfo info;
  codegen::KernelObject object;
  bool hasBarriers = false;
};
llvm::Expected<EmulatedCode> emulateKernel(mlir::func::FuncOp kernel, const std::string &symbol);

/// Makes images for the stand-in for NVIDIA's driver (test/Support/cuda_stand_in/generated.cc): a line "BOWLINE
/// EMULATED", a line for each function with its name, how many parameters it has and 1 if its threads wait for each
/// other, an empty line, a line with how many bytes follow, and these: a shared object with the functions. Plans call
/// it "ptx". Kernels that are in the cache, where there is one, are not compiled again.
std::unique_ptr<KernelCodegen> createEmulatedCodegen(bool hasCode, std::shared_ptr<KernelCache> cache = nullptr);

} // namespace bowline::test

#endif // BOWLINE_TEST_UNIT_CODEGEN_EMULATEDCODE_H
