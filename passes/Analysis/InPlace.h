//===- InPlace.h - Which operands of a launch may share memory
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_ANALYSIS_INPLACE_H
#define BOWLINE_PASSES_ANALYSIS_INPLACE_H

#include "dialects/Plan/PlanOps.h"

namespace bowline {

/// Returns whether the kernel of `launch` permits its argument `output` to alias its operand `buffer`, and the launch
/// uses `buffer` for one argument only.
bool mayOverwrite(plan::LaunchOp launch, plan::KernelOp kernel, unsigned output, mlir::Value buffer);

} // namespace bowline

#endif // BOWLINE_PASSES_ANALYSIS_INPLACE_H
