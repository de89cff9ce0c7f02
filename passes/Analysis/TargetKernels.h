//===- TargetKernels.h - What the target says of a kernel
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_ANALYSIS_TARGETKERNELS_H
#define BOWLINE_PASSES_ANALYSIS_TARGETKERNELS_H

#include "absl/status/statusor.h"
#include "dialects/Plan/PlanOps.h"
#include "kernels/registry/registry.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallVector.h"

#include <string>

namespace bowline {

/// What a launch of a kernel of the registry needs.
struct KernelNeeds {
  /// Workspace, in bytes.
  size_t scratchBytes = 0;
  /// (output, input) arguments that may be the same bytes.
  llvm::SmallVector<std::pair<int, int>> inPlace;
};

/// The device that `module`, or one around it, is compiled for, as its plan.target says: "cpu" where it says nothing.
std::string deviceOf(mlir::ModuleOp module);

/// kNotFound where `device` has no such kernel, kInvalidArgument where it refuses the signature.
absl::StatusOr<KernelNeeds> needsOf(llvm::StringRef device, const kernels::Signature &signature);

/// What the address of the kernel's argument `index` must be a multiple of on `device`: a power of two, or 0 where the
/// size of an element is enough.
int64_t argumentAlignment(llvm::StringRef device, plan::KernelOp kernel, unsigned index);

} // namespace bowline

#endif // BOWLINE_PASSES_ANALYSIS_TARGETKERNELS_H
