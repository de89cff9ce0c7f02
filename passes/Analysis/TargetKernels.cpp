//===- TargetKernels.cpp - What the target says of a kernel
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Analysis/TargetKernels.h"
#include "kernels/cuda/kernel_program.h"

using namespace mlir;
using namespace bowline;

std::string bowline::deviceOf(ModuleOp module) {
  for (; module; module = module->getParentOfType<ModuleOp>())
    if (auto target = module->getAttrOfType<plan::TargetAttr>(plan::PlanDialect::kTargetAttr))
      return target.getDevice().str();
  return "cpu";
}

int64_t bowline::argumentAlignment(StringRef device, plan::KernelOp kernel, unsigned index) {
  // Code for processors reads elements wherever they lie, and may write whole cache lines past the caches. Code for
  // cards moves several elements at once, and libraries there take what their own allocations have.
  if (device == "cuda")
    return plan::kCudaAlignment;
  if (kernel.getArgument(index).getAccess() != plan::Access::Read)
    return plan::kAlignment;
  // Attention reads two elements of bf16 as one word.
  return kernel.getRegistered() && kernel.getRegistered()->starts_with("attention") ? plan::kAlignment : 0;
}

absl::StatusOr<KernelNeeds> bowline::needsOf(StringRef device, const kernels::Signature &signature) {
  KernelNeeds needs;
  if (device == "cuda") {
    absl::StatusOr<kernels::cuda::KernelProgram> program = kernels::cuda::ProgramOf(signature);
    if (!program.ok())
      return program.status();
    needs.scratchBytes = program->scratch_bytes;
    return needs;
  }
  absl::StatusOr<const kernels::KernelDefinition *> definition = kernels::FindKernel(signature.kernel);
  if (!definition.ok())
    return definition.status();
  absl::StatusOr<std::unique_ptr<kernels::Kernel>> instance = (*definition)->create(signature);
  if (!instance.ok())
    return instance.status();
  needs.scratchBytes = (*instance)->ScratchBytes();
  needs.inPlace.assign((*definition)->in_place.begin(), (*definition)->in_place.end());
  return needs;
}
