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

/// Assigns operations of the loss, or of the function that runs per microbatch, to phases. Forward operations are those
/// that results and writes need, except writes of gradients; the rest is backward. An operation that both phases need
/// is in both if it depends on arguments or on parameters only, and not on another stage: each phase computes it.
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
