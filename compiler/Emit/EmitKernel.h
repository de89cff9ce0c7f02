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

/// The plan's description of a kernel, without the image that holds its code. Fails with a diagnostic where there is no
/// code yet, or where plans have no such type.
llvm::FailureOr<std::unique_ptr<fbs::KernelT>> emitKernel(plan::KernelOp op);

/// How the kernel's data are checked before each launch; null where they need not be.
const kernels::DataCheck *dataCheckOf(plan::KernelOp op);

/// How many rows there are for the data of the kernel.
int64_t rowsOfCheck(const kernels::DataCheck &check, plan::KernelOp op);

/// The kernel that checks the data of \p kernel.
std::unique_ptr<fbs::KernelT> emitDataCheck(const kernels::DataCheck &check, const fbs::KernelT &kernel);

} // namespace bowline

#endif // BOWLINE_COMPILER_EMIT_EMITKERNEL_H
