//===- MachineLinks.h - The machine model with the links that a pass is told
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_ANALYSIS_MACHINELINKS_H
#define BOWLINE_PASSES_ANALYSIS_MACHINELINKS_H

#include "kernels/registry/machine_model.h"
#include "mlir/IR/BuiltinOps.h"

namespace bowline {

/// \p links: "[AXIS:]LINK" each (kernels/registry/link.h), with semicolons between; the others are the model's own.
/// Fails with a diagnostic at \p module, whose mesh has the axes.
mlir::FailureOr<kernels::MachineModel> machineWithLinks(mlir::ModuleOp module, llvm::StringRef links);

} // namespace bowline

#endif // BOWLINE_PASSES_ANALYSIS_MACHINELINKS_H
