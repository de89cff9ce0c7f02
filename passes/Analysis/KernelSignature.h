//===- KernelSignature.h - What a target is asked about a kernel
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

/// What has the rows that the data which `check` is about number: an operand of the operation that a kernel computes,
/// or its result.
mlir::Value tableOf(mlir::Operation *op, const kernels::DataCheck &check);

/// The number of the count of valid rows and of the arguments of which the kernel leaves rows out behind that: of
/// generated code what the kernel says, of a registered one what the registry knows. None where it uses all rows.
llvm::SmallVector<int64_t> validRowsOf(plan::KernelOp kernel);

} // namespace bowline

#endif // BOWLINE_PASSES_ANALYSIS_KERNELSIGNATURE_H
