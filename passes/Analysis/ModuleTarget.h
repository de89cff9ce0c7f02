//===- ModuleTarget.h - The target that a module is compiled for
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_ANALYSIS_MODULETARGET_H
#define BOWLINE_PASSES_ANALYSIS_MODULETARGET_H

#include "dialects/Plan/PlanOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "targets/target.h"

#include <string>

namespace bowline {

/// The target from `plan.target` of a module or of a module around it; without one, the default target, one thread.
struct ModuleTarget {
  const targets::Target *description;
  std::string level;
  int64_t threads = 1;

  /// Fails with a diagnostic at \p module where this build has no such target.
  static mlir::FailureOr<ModuleTarget> of(mlir::ModuleOp module);

  const targets::Target *operator->() const { return description; }

  absl::StatusOr<targets::KernelNeeds> needsOf(const kernels::Signature &signature) const {
    return description->needs(signature, level);
  }
  /// See targets::Target::argument_alignment.
  int64_t argumentAlignment(plan::KernelOp kernel, unsigned index) const;
};

/// The buffer alignment in bytes on the module's target device. If this build lacks that device, returns the default
/// target's alignment.
int64_t deviceAlignment(mlir::ModuleOp module);

/// The cost model of the module's target. \p links replaces the target's own links: a list of "[AXIS:]LINK" separated
/// by semicolons (targets/costs/link.h), with axes of the module's mesh. Fails with a diagnostic at \p module.
mlir::FailureOr<targets::CostModel> costModelOf(mlir::ModuleOp module, llvm::StringRef links = {});

} // namespace bowline

#endif // BOWLINE_PASSES_ANALYSIS_MODULETARGET_H
