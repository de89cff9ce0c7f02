//===- StageSplitting.h - One program per rank of a pipeline
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_LOCAL_STAGES_STAGESPLITTING_H
#define BOWLINE_PASSES_LOCAL_STAGES_STAGESPLITTING_H

#include "passes/Local/Stages/RankFunction.h"
#include "passes/Strategy/Strategy.h"

namespace bowline {

/// Replaces the functions, entries and variables of a module with stages by nested modules `@stage0`, `@stage1`, ...,
/// one per coordinate along the stages' axis. Each is the whole program of the ranks with this coordinate: variables,
/// functions, and entries of the same names. All other operations stay in the outer module, for all ranks.
///
/// The function that runs per microbatch becomes fragments (MicrobatchFragments.h). The entry's timeline calls them in
/// the order of the strategy's schedule (default: 1f1b). Of each other function, each rank gets its part
/// (RankFunction.h). Every rank computes values without a stage, such as the step count, and returns all results.
class StageSplitting {
public:
  /// \p module is that of one rank, labelled. `strategy` has the choices of `lines`, and outlives the splitting.
  StageSplitting(mlir::ModuleOp module, const Strategy &strategy, dist::StrategyOp lines)
      : module(module), symbols(module), strategy(strategy), lines(lines) {}

  /// Fails with a diagnostic, having changed nothing, where the schedule does not fit.
  mlir::LogicalResult run();

private:
  /// The number of microbatches; 0 if nothing runs per microbatch.
  mlir::FailureOr<int64_t> countMicrobatches();
  mlir::FailureOr<Schedule> readSchedule(int64_t microbatches);
  /// The location of the strategy's line on the schedule, or else of that on the mesh.
  mlir::Location scheduleLocation();
  mlir::ModuleOp split(mlir::OpBuilder &builder, const PipelineRanks &ranks, int64_t rank);
  void addEntry(graph::EntryOp entry, const MicrobatchFragments *fragments, mlir::SymbolTable &rankSymbols);

  mlir::ModuleOp module;
  mlir::SymbolTable symbols;
  const Strategy &strategy;
  dist::StrategyOp lines;
};

} // namespace bowline

#endif // BOWLINE_PASSES_LOCAL_STAGES_STAGESPLITTING_H
