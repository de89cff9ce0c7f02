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

/// Call after compileModel succeeded. Compiles again and compares the results of the program before and after each
/// step, up to the selection of kernels (Pipelines/VerifySteps.h). A Hugging Face model is compiled with the sizes of
/// shrinkModel, a .mlir file as it is. Steps with a minimum size for tensors then ignore it. Returns a sentence on the
/// comparison. Returns kAborted, naming the step and the first tensor that differs, if a step changes results, and
/// kInvalidArgument if the program is too large to be interpreted or computes NaN.
absl::StatusOr<std::string> verifyModel(const CompileOptions &options);

} // namespace bowline

#endif // BOWLINE_COMPILER_DRIVER_VERIFYMODEL_H
