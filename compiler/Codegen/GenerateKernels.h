//===- GenerateKernels.h - Code for the bodies of plan kernels
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_CODEGEN_GENERATEKERNELS_H
#define BOWLINE_COMPILER_CODEGEN_GENERATEKERNELS_H

#include "compiler/Codegen/Backend.h"
#include "passes/Analysis/PhasePass.h"

namespace bowline {

/// Replaces the body of every generated plan.kernel by a symbol in one plan.image, and records which arguments may be
/// computed in place. If `options.hasCode` is false, the image is marked and empty.
std::unique_ptr<mlir::Pass> createGenerateKernelsPass(const Backend &backend, CodegenOptions options);

/// Verifies that after phase `codegen` only the plan dialect remains: bodies of kernels have become code.
llvm::LogicalResult verifyCodegen(mlir::ModuleOp module);

} // namespace bowline

#endif // BOWLINE_COMPILER_CODEGEN_GENERATEKERNELS_H
