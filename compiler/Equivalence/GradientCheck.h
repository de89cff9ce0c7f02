//===- GradientCheck.h - Gradients against central differences ---*- C++ -*-===//
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_EQUIVALENCE_GRADIENTCHECK_H
#define BOWLINE_COMPILER_EQUIVALENCE_GRADIENTCHECK_H

#include "compiler/Equivalence/Observation.h"

namespace bowline {

struct GradientCounts {
  int64_t right = 0;     ///< gradients confirmed by differences of the loss
  int64_t undecided = 0; ///< gradients for which differences over several distances agree with nothing
};

/// Compares the gradients of one microbatch in `after`, in f64, with central differences of the loss along one random
/// direction per parameter; mirrors move with their owner. They may differ by `bound`, relative to the derivative, or
/// to `floor` if that is larger. Does nothing if `before` had these gradients or no function is the loss. Fails with a
/// diagnostic at `module`, naming `step` and the parameter, if differences over two distances agree with each other but
/// not with the gradient. Warns in the same way about undecided gradients.
llvm::FailureOr<GradientCounts> checkNewGradients(llvm::StringRef step, mlir::ModuleOp module, RunnableProgram &program,
                                                  ObservedValues &values, const Observation &before,
                                                  const Observation &after, double bound, double floor);

} // namespace bowline

#endif // BOWLINE_COMPILER_EQUIVALENCE_GRADIENTCHECK_H
