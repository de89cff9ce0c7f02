//===- PrepareProgram.h - The program that runs once after parameters were set
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_ANALYSIS_PREPAREPROGRAM_H
#define BOWLINE_PASSES_ANALYSIS_PREPAREPROGRAM_H

#include "dialects/Plan/PlanOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseSet.h"

namespace bowline {

/// The program of the entry of kind `prepare`, which computes values from parameters and constants alone. A session
/// runs it after a caller sets parameters, before any other entry. Its results are buffers of kind state without a
/// plan.state: they persist, and no checkpoint contains them.
class PrepareProgram {
public:
  PrepareProgram(mlir::ModuleOp module, mlir::SymbolTable &symbols);

  /// Returns whether the module may have this program: only entry `init` writes parameters, and the module is not the
  /// role of a pipeline stage, since all stages must have the same entries.
  bool isPossible() const { return possible; }

  /// Returns whether `program` is neither the program of `prepare` nor that of `init`.
  bool isOther(plan::ProgramOp program) const { return program != prepare && program != init; }

  /// Returns whether `buffer` holds the same value whenever another entry runs: a parameter, a constant, or a result.
  bool isFixed(mlir::Value buffer) const;

  /// The only segment of the program; the program and its entry are created on first use.
  plan::SegmentOp segment();

  /// Moves a launch of another program behind all launches of this one.
  void take(plan::LaunchOp launch);

  /// Notes that this program writes `buffer` from now on.
  void addResult(mlir::Value buffer) { results.insert(buffer); }

  /// Chooses the kinds of the results once all launches were moved: results that other programs use become persistent,
  /// the others temporary.
  void keepResults();

private:
  mlir::ModuleOp module;
  mlir::SymbolTable &symbols;
  plan::ProgramOp prepare, init;
  bool possible = false;
  llvm::DenseSet<mlir::Value> results;
};

} // namespace bowline

#endif // BOWLINE_PASSES_ANALYSIS_PREPAREPROGRAM_H
