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

/// Replaces functions, entries and variables of a module in stages by one nested module per rank along the axis of the
/// stages, `@stage0`, `@stage1`, ..., in the order of their coordinates. Each is the whole program of the ranks with
/// this coordinate: its variables, its functions, and entries of the same names. The rest stays, and is for all.
///
/// The function that runs per microbatch becomes fragments (MicrobatchFragments.h). The entry's timeline calls them in
/// the order of the strategy's schedule, which is 1f1b if it has none. All other functions stay, and each rank has its
/// part of them (RankFunction.h). Every rank keeps values without a stage, such as the step, and has all results.
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
