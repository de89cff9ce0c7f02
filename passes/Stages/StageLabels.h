//===- StageLabels.h - The stages and the phase of every operation
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_STAGES_STAGELABELS_H
#define BOWLINE_PASSES_STAGES_STAGELABELS_H

#include "passes/Stages/MicrobatchPhases.h"
#include "passes/Stages/StageDataflow.h"

namespace bowline {

/// Writes `stage.index` on every variable and every operation of every function, and `stage.phase` on the operations
/// that run per microbatch, in place of earlier labels.
///
/// A transfer is in both of its stages; a `stage.sum`, a `stage.broadcast` and a terminator are in all stages. An
/// operation that floats (StageDataflow.h) is in every stage that needs it. All others are in their operands' stage.
class StageLabels {
public:
  /// `flow` is the dataflow of the module, which must not have changed since `flow` was computed.
  StageLabels(mlir::ModuleOp module, const StageDataflow &flow) : module(module), symbols(module), flow(flow) {}

  /// Fails with diagnostics, without a change, if an operation uses values of two stages without a transfer, two stages
  /// use one parameter, or transfers of a microbatch do not go from each stage to the next and back.
  mlir::LogicalResult run();

private:
  mlir::LogicalResult checkOperands(mlir::Operation *op);
  mlir::LogicalResult checkWrite(graph::WriteOp write);
  mlir::LogicalResult checkReturn(mlir::Operation *op);
  mlir::LogicalResult checkParameter(graph::ParamOp param);
  mlir::LogicalResult checkTransfer(stage::TransferOp transfer, StagePhase phase);
  mlir::LogicalResult checkFunction(graph::FuncOp function);
  bool runsPerMicrobatch(graph::FuncOp function);
  void label(mlir::Operation *op, const StageDataflow::Stages &stages);

  mlir::ModuleOp module;
  mlir::SymbolTable symbols;
  const StageDataflow &flow;
};

/// Runs StageCombination on functions that do not run per microbatch, then labels a module with \p count stages.
mlir::LogicalResult labelStages(mlir::ModuleOp module, int64_t count);

} // namespace bowline

#endif // BOWLINE_PASSES_STAGES_STAGELABELS_H
