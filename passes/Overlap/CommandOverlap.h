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

/// How far to go. Each step down takes less memory.
struct OverlapOptions {
  /// Bounds the prefetch distances of the program.
  int64_t mostPrefetch = std::numeric_limits<int64_t>::max();
  /// Reduce while the last microbatch is computed.
  bool mergesRuns = true;
  targets::CostModel model = targets::CostModel(targets::Costs());
};

/// Gives the collectives of a program streams of their own, one for each communicator, and its commands an order in
/// which they run beside computation: RunMerging, in pipelines EarlyReductions, then SegmentSchedule. Segments that are
/// on other streams already, such as the transfers of a pipeline, stay as they are, and so does a program that would
/// gain nothing. EventInsertion inserts the waits between commands of different streams.
class CommandOverlap {
public:
  CommandOverlap(mlir::ModuleOp module, mlir::SymbolTable &symbols, const OverlapOptions &options = {})
      : symbols(symbols), cost(module, symbols, options.model), options(options) {}

  struct Result {
    /// Seconds of one step by the cost model, before and after.
    double serialSeconds = 0, seconds = 0;
    /// How many reductions moved from the update of a pipeline into calls before it.
    int64_t earlyReductions = 0;
  };

  /// Empty where the program stays as it is.
  std::optional<Result> run(plan::ProgramOp program);

private:
  mlir::SymbolTable &symbols;
  CommandCost cost;
  OverlapOptions options;
};

} // namespace bowline

#endif // BOWLINE_PASSES_OVERLAP_COMMANDOVERLAP_H
