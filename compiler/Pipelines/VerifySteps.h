//===- VerifySteps.h - Whether each step keeps the results of a program
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_PIPELINES_VERIFYSTEPS_H
#define BOWLINE_COMPILER_PIPELINES_VERIFYSTEPS_H

#include "compiler/Equivalence/EquivalenceChecker.h"
#include "compiler/Pipelines/Pipeline.h"

namespace bowline {

/// Runs the steps of `runPhases` one by one and compares the program before and after each with \p checker, which must
/// be new. After `select-kernels`, kernels are interpreted as the operations that they replaced (KernelInterpreter.h).
/// Fails with diagnostics where a step fails or changes results; EquivalenceChecker::isRefuted tells these apart.
llvm::LogicalResult verifySteps(mlir::ModuleOp module, const PipelineOptions &options, Phase from, Phase to,
                                EquivalenceChecker &checker);

/// As above, with the given steps; for tests.
llvm::LogicalResult verifySteps(mlir::ModuleOp module, llvm::ArrayRef<Step> steps, EquivalenceChecker &checker);

} // namespace bowline

#endif // BOWLINE_COMPILER_PIPELINES_VERIFYSTEPS_H
