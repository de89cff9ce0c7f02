//===- KernelSignature.h - The signature of a kernel, for questions to a target
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_ANALYSIS_KERNELSIGNATURE_H
#define BOWLINE_PASSES_ANALYSIS_KERNELSIGNATURE_H

#include "dialects/Plan/PlanOps.h"
#include "kernels/registry/data_check.h"
#include "kernels/registry/registry.h"

namespace bowline {

/// The signature of the registered kernel `name`, specialised on `config` (integers, integer lists, floats, texts).
/// `arguments` are those without the scratch operand.
kernels::Signature kernelSignature(llvm::StringRef name, mlir::DictionaryAttr config,
                                   llvm::ArrayRef<plan::ArgumentAttr> arguments, int64_t threads, bool hasEpilogue);

/// The tensor into whose rows the checked indices of `check` point: an operand of `op`, which a kernel computes, or its
/// result.
mlir::Value tableOf(mlir::Operation *op, const kernels::DataCheck &check);

/// The argument index of the count of valid rows, followed by the indices of the arguments whose rows from the count on
/// the kernel skips. From `rows` of generated code, else from the registry. Empty if the kernel uses all rows.
llvm::SmallVector<int64_t> validRowsOf(plan::KernelOp kernel);

} // namespace bowline

#endif // BOWLINE_PASSES_ANALYSIS_KERNELSIGNATURE_H
