//===- EmitKernel.h - From plan.kernel to the plan's table of kernels
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_EMIT_EMITKERNEL_H
#define BOWLINE_COMPILER_EMIT_EMITKERNEL_H

#include "dialects/Plan/PlanOps.h"
#include "kernels/registry/data_check.h"
#include "runtime/plan/plan_generated.h"

#include <memory>

namespace bowline {

/// Returns the plan's description of a kernel, without its image. Fails with a diagnostic where code has not been
/// generated yet, or where plans cannot express a type.
llvm::FailureOr<std::unique_ptr<fbs::KernelT>> emitKernel(plan::KernelOp op);

/// Returns the check that must run on the kernel's data before each launch; null if none is needed.
const kernels::DataCheck *dataCheckOf(plan::KernelOp op);

/// Returns the number of rows against which the check compares the kernel's data.
int64_t rowsOfCheck(const kernels::DataCheck &check, plan::KernelOp op);

/// Returns the check kernel for the data of \p kernel.
std::unique_ptr<fbs::KernelT> emitDataCheck(const kernels::DataCheck &check, const fbs::KernelT &kernel);

} // namespace bowline

#endif // BOWLINE_COMPILER_EMIT_EMITKERNEL_H
