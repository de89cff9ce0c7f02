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

/// Whether reading the results of `launch` again costs less than computing them: not if it makes them out of little.
bool isWorthKeeping(plan::LaunchOp launch, mlir::SymbolTable &symbols);

/// Lets the users of the results of `launch` use those of `equal`, and erases `launch`.
void replaceLaunch(plan::LaunchOp launch, plan::LaunchOp equal);

/// Moves launches in front of the repeated segment that they are in, if they read nothing that the segment changes and
/// are the only writers of their results. These keep their memory through all runs of the segment.
class InvariantHoisting {
public:
  explicit InvariantHoisting(mlir::ModuleOp module) : module(module), symbols(module) {}

  /// Moves the first `most` such launches, in program order, and returns how many there were.
  size_t run(size_t most);

private:
  size_t hoistFrom(plan::SegmentOp segment, size_t most);
  bool isHoistable(plan::LaunchOp launch, const SegmentInvariants &invariants);
  bool isOwnResult(plan::LaunchOp launch, mlir::Value buffer, const SegmentInvariants &invariants);

  mlir::ModuleOp module;
  mlir::SymbolTable symbols;
};

} // namespace bowline

#endif // BOWLINE_PASSES_HOISTING_INVARIANTHOISTING_H
