//===- CreateProgram.h - The program of a module in any phase
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_EQUIVALENCE_CREATEPROGRAM_H
#define BOWLINE_COMPILER_EQUIVALENCE_CREATEPROGRAM_H

#include "compiler/Equivalence/RunnableProgram.h"

namespace bowline {

/// `arithmetic` and `bodies` must outlive the program, and `bodies` must have learned the module. Fails with a
/// diagnostic at the module if the interpreters cannot run it.
llvm::FailureOr<std::unique_ptr<RunnableProgram>> createProgram(mlir::ModuleOp module, const KernelBodies &bodies,
                                                                const graph::Arithmetic &arithmetic);

} // namespace bowline

#endif // BOWLINE_COMPILER_EQUIVALENCE_CREATEPROGRAM_H
