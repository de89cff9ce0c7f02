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
  int64_t right = 0;     ///< gradients that differences of the loss confirm
  int64_t undecided = 0; ///< of a loss whose differences over several distances agree with nothing
};

/// Compares the gradients in `after`, of a microbatch in f64, with central differences of the loss: per parameter along
/// one random direction, mirrors moving with their owner. Relative to the derivative, or to `floor` where it is
/// smaller, they may differ by `bound`. Does nothing where `before` had these gradients or no function is the loss.
/// Fails with a diagnostic at `module` that names `step` and the parameter where differences over two distances agree
/// with each other and not with the gradient; warns in the same way of undecided gradients.
llvm::FailureOr<GradientCounts> checkNewGradients(llvm::StringRef step, mlir::ModuleOp module, RunnableProgram &program,
                                                  ObservedValues &values, const Observation &before,
                                                  const Observation &after, double bound, double floor);

} // namespace bowline

#endif // BOWLINE_COMPILER_EQUIVALENCE_GRADIENTCHECK_H
