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

/// The operations of a stage's backward pass that run at once: those on which the gradients depend that it sends to the
/// stage before, and sums such as the gradients of norms and biases, whose operands would take more memory until later
/// than the sums take time. The other operations compute the gradients of matrices, and may run later (Qi et al., 2023,
/// section 2). No operation where nothing is sent. \p function has labels.
llvm::DenseSet<mlir::Operation *> findBackwardInput(graph::FuncOp function, int64_t stage);

/// Whether an operation is in the backward pass alone.
bool isBackward(mlir::Operation *op);
/// Whether both the forward and the backward pass compute the operation for themselves.
bool isInBothPhases(mlir::Operation *op);

} // namespace bowline

#endif // BOWLINE_PASSES_LOCAL_STAGES_BACKWARDINPUT_H
