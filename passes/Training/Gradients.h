//===- Gradients.h - Reverse-mode differentiation of a block
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_TRAINING_GRADIENTS_H
#define BOWLINE_PASSES_TRAINING_GRADIENTS_H

#include "mlir/IR/Builders.h"

namespace bowline {

/// Appends at the builder's insertion point, which must be after `output`'s definition in the same block, operations
/// that compute the gradients of `output` with respect to `inputs`, given the gradient of the output itself (`seed`).
///
/// Returns one value per input, of the input's type; null where the output does not depend on the input. Gradients stop
/// at integer values. Fails with a diagnostic at an operation that is on the way and not differentiable.
llvm::FailureOr<llvm::SmallVector<mlir::Value>> buildGradients(mlir::OpBuilder &builder, mlir::Value output,
                                                               mlir::Value seed, mlir::ValueRange inputs);

} // namespace bowline

#endif // BOWLINE_PASSES_TRAINING_GRADIENTS_H
