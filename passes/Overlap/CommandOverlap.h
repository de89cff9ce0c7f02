//===- CommandOverlap.h - Communication runs beside computation
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_OVERLAP_COMMANDOVERLAP_H
#define BOWLINE_PASSES_OVERLAP_COMMANDOVERLAP_H

#include "passes/Analysis/CommandCost.h"
#include "passes/Analysis/ModuleTarget.h"

#include <limits>

namespace bowline {

/// Options that limit the overlap. A smaller `mostPrefetch` and `mergesRuns` false take less memory.
struct OverlapOptions {
  /// An upper bound of every prefetch distance (`dist.prefetch`).
  int64_t mostPrefetch = std::numeric_limits<int64_t>::max();
  /// Whether RunMerging may run, so that gradients are reduced while the last microbatch is computed.
  bool mergesRuns = true;
  targets::CostModel model = targets::CostModel(targets::Costs());
};

/// Moves the collectives of a program to one stream per communicator, and orders commands so that communication runs
/// beside computation. Runs RunMerging, in pipelines EarlyReductions, then SegmentSchedule. Does not change segments
/// that use other streams already, such as transfers of a pipeline, nor a program that would gain nothing.
/// EventInsertion inserts the waits between commands of different streams.
class CommandOverlap {
public:
  CommandOverlap(mlir::ModuleOp module, mlir::SymbolTable &symbols, const OverlapOptions &options = {})
      : symbols(symbols), cost(module, symbols, options.model), options(options) {}

  struct Result {
    /// The cost model's estimate of one step in seconds, before and after.
    double serialSeconds = 0, seconds = 0;
    /// The number of reductions that moved from a pipeline's update into earlier calls.
    int64_t earlyReductions = 0;
  };

  /// Returns none if the program does not change.
  std::optional<Result> run(plan::ProgramOp program);

private:
  mlir::SymbolTable &symbols;
  CommandCost cost;
  OverlapOptions options;
};

} // namespace bowline

#endif // BOWLINE_PASSES_OVERLAP_COMMANDOVERLAP_H
