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

/// The tensor whose rows the data of `check` number: an operand of the operation that a kernel computes, or the
/// operation's result.
mlir::Value tableOf(mlir::Operation *op, const kernels::DataCheck &check);

/// The argument number of the count of valid rows, then those of the arguments whose rows behind the count the kernel
/// leaves out. Generated code states them, the registry those of its kernels. None where it uses all rows.
llvm::SmallVector<int64_t> validRowsOf(plan::KernelOp kernel);

} // namespace bowline

#endif // BOWLINE_PASSES_ANALYSIS_KERNELSIGNATURE_H
