//===- InvariantHoisting.h - Commands that give the same in every run of a segment run once
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_HOISTING_INVARIANTHOISTING_H
#define BOWLINE_PASSES_HOISTING_INVARIANTHOISTING_H

#include "mlir/IR/BuiltinOps.h"
#include "passes/Analysis/SegmentInvariants.h"

namespace bowline {

/// A mark of launches: they stay where they are, because their results would take memory that is worth more elsewhere.
inline constexpr llvm::StringLiteral kStaysAttr = "plan.stays";

/// Called before a launch moves. `isNew`: false if an equal launch moved before, whose results replace those of this
/// one.
using HoistListener = llvm::function_ref<void(plan::LaunchOp launch, bool isNew)>;

/// Returns whether keeping the results of `launch` in memory pays: not if they are much larger than its operands, and
/// not if the launch is marked kStaysAttr.
bool isWorthKeeping(plan::LaunchOp launch, mlir::SymbolTable &symbols);

/// Replaces the results of `launch` by those of `equal`, which computes the same, and erases `launch`.
void replaceLaunch(plan::LaunchOp launch, plan::LaunchOp equal);

/// Moves launches out of a repeated segment, in front of it, if they read nothing that the segment changes and are the
/// only writers of their results. The results then keep their memory through all runs of the segment.
class InvariantHoisting {
public:
  explicit InvariantHoisting(mlir::ModuleOp module) : module(module), symbols(module) {}

  /// Moves all such launches that are not marked kStaysAttr, in program order, and returns their number. Calls `moves`
  /// before it moves each.
  size_t run(HoistListener moves = nullptr);

private:
  size_t hoistFrom(plan::SegmentOp segment, HoistListener moves);
  bool isHoistable(plan::LaunchOp launch, const SegmentInvariants &invariants);
  bool isOwnResult(plan::LaunchOp launch, mlir::Value buffer, const SegmentInvariants &invariants);

  mlir::ModuleOp module;
  mlir::SymbolTable symbols;
};

} // namespace bowline

#endif // BOWLINE_PASSES_HOISTING_INVARIANTHOISTING_H
