//===- BackwardInput.h - What of a backward pass the stage before waits for
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

/// The operations of a stage's backward pass on which the gradients depend that it sends to the stage before. The other
/// operations are for the gradients of parameters, and may run later. \p function has labels.
llvm::DenseSet<mlir::Operation *> findBackwardInput(graph::FuncOp function, int64_t stage);

/// Whether an operation is in the backward pass alone.
bool isBackward(mlir::Operation *op);
/// Whether both the forward and the backward pass compute the operation for themselves.
bool isInBothPhases(mlir::Operation *op);

} // namespace bowline

#endif // BOWLINE_PASSES_LOCAL_STAGES_BACKWARDINPUT_H
