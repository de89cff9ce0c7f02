//===- VerifyModel.h - Whether compilation keeps the results of a model
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_DRIVER_VERIFYMODEL_H
#define BOWLINE_COMPILER_DRIVER_VERIFYMODEL_H

#include "compiler/Driver/CompileOptions.h"

namespace bowline {

/// Compiles a second time and compares the program before and after each step, up to the selection of kernels
/// (Pipelines/VerifySteps.h): a Hugging Face directory with the sizes of shrinkModel, a .mlir file as it is. Call it
/// where compileModel has succeeded. Steps that wait for large sizes act on any. Returns a sentence on the comparison.
/// kAborted names the step and the first tensor that differs; kInvalidArgument says that the program is too large to be
/// interpreted, or computes NaN.
absl::StatusOr<std::string> verifyModel(const CompileOptions &options);

} // namespace bowline

#endif // BOWLINE_COMPILER_DRIVER_VERIFYMODEL_H
