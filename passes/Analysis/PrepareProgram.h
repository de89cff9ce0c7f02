//===- PrepareProgram.h - What runs once after parameters were set
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

/// The program of the entry of kind `prepare`, which whoever runs the plan runs after parameters were set and before
/// any other entry that reads its results. It computes from parameters and constants alone. Its results are buffers of
/// kind state that no plan.state names: they persist, and no checkpoint has them.
class PrepareProgram {
public:
  PrepareProgram(mlir::ModuleOp module, mlir::SymbolTable &symbols);

  /// Whether there may be one: no entry but `init` writes a parameter, and the module is not that of one stage, whose
  /// entries are those of all stages.
  bool isPossible() const { return possible; }

  /// Whether `program` is neither this one nor that of `init`.
  bool isOther(plan::ProgramOp program) const { return program != prepare && program != init; }

  /// Whether `buffer` holds the same whenever another entry runs: a parameter, a constant, or a result.
  bool isFixed(mlir::Value buffer) const;

  /// Its only segment; the program and its entry are made on first use.
  plan::SegmentOp segment();

  /// Moves a launch of another program behind all that are in here.
  void take(plan::LaunchOp launch);

  /// `buffer` is written in here from now on.
  void addResult(mlir::Value buffer) { results.insert(buffer); }

  /// When no launch moves any more: results persist if other programs use them, and are temporary otherwise.
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
