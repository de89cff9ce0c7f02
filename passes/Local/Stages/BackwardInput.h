//===- BackwardInput.h - The part of a backward pass that the stage before waits for
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_LOCAL_STAGES_BACKWARDINPUT_H
#define BOWLINE_PASSES_LOCAL_STAGES_BACKWARDINPUT_H

#include "dialects/Graph/GraphOps.h"
#include "llvm/ADT/DenseSet.h"

namespace bowline {

/// The operations of a stage's backward pass that belong to its first half, `backward_input`: those on which gradients
/// for the previous stage depend, and cheap sums such as gradients of norms and biases, since keeping their operands
/// would cost more memory than they cost time. The other operations compute gradients of matrices, and may run later
/// (Qi et al., 2023, section 2). Empty if the stage sends no gradients. \p function must have stage labels.
llvm::DenseSet<mlir::Operation *> findBackwardInput(graph::FuncOp function, int64_t stage);

/// Returns whether an operation belongs to the backward pass only.
bool isBackward(mlir::Operation *op);
/// Returns whether both the forward and the backward pass compute the operation for themselves.
bool isInBothPhases(mlir::Operation *op);

} // namespace bowline

#endif // BOWLINE_PASSES_LOCAL_STAGES_BACKWARDINPUT_H
