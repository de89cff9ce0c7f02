//===- MicrobatchPhases.h - Forward and backward operations of a microbatch
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_STAGES_MICROBATCHPHASES_H
#define BOWLINE_PASSES_STAGES_MICROBATCHPHASES_H

#include "dialects/Graph/GraphOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace bowline {

enum class StagePhase { Forward, Backward, Both };

/// Divides the loss, or the function that runs per microbatch. Forward are the operations that its results and writes
/// need, except writes of gradients; the rest is backward. An operation that both need, or that depends on arguments or
/// on parameters but not on both nor on another stage, is in both: each phase makes its own.
class MicrobatchPhases {
public:
  /// \p symbols is that of the function's module.
  MicrobatchPhases(graph::FuncOp function, mlir::SymbolTable &symbols);
  StagePhase phaseOf(mlir::Operation *op) const;

private:
  llvm::DenseMap<mlir::Operation *, StagePhase> phases;
};

} // namespace bowline

#endif // BOWLINE_PASSES_STAGES_MICROBATCHPHASES_H
