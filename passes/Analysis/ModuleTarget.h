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

/// The `plan.target` of a module or of one around it; the default target with one thread where there is none.
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

/// The alignment of buffers on the device of the module, or of one around it; the default target's where this build has
/// no target of the device's name.
int64_t deviceAlignment(mlir::ModuleOp module);

/// The cost model of the module's target. \p links: "[AXIS:]LINK" each (targets/costs/link.h), with semicolons between,
/// instead of the target's own. Fails with a diagnostic at \p module, whose mesh has the axes.
mlir::FailureOr<targets::CostModel> costModelOf(mlir::ModuleOp module, llvm::StringRef links = {});

} // namespace bowline

#endif // BOWLINE_PASSES_ANALYSIS_MODULETARGET_H
