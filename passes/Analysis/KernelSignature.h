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
#include "kernels/registry/registry.h"

namespace bowline {

/// The signature of the registered kernel `name`, specialised on `config` (integers, integer lists, floats, texts).
/// `arguments` are those without the scratch operand.
kernels::Signature kernelSignature(llvm::StringRef name, mlir::DictionaryAttr config,
                                   llvm::ArrayRef<plan::ArgumentAttr> arguments, int64_t threads, bool hasEpilogue);

} // namespace bowline

#endif // BOWLINE_PASSES_ANALYSIS_KERNELSIGNATURE_H
