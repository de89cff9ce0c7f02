//===- PrepareHoisting.h - Commands that depend on parameters alone run when these are set
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_HOISTING_PREPAREHOISTING_H
#define BOWLINE_PASSES_HOISTING_PREPAREHOISTING_H

#include "mlir/IR/BuiltinOps.h"
#include "passes/Analysis/PrepareProgram.h"
#include "passes/Hoisting/InvariantHoisting.h"

#include <map>
#include <vector>

namespace bowline {

/// Moves launches that read only parameters, constants and results of moved launches into the program of entry
/// `prepare`. Equal launches, of one program or several, become one. Results that other programs use persist.
class PrepareHoisting {
public:
  explicit PrepareHoisting(mlir::ModuleOp module) : module(module), symbols(module), prepare(module, symbols) {}

  /// Moves all such launches that are not marked kStaysAttr, in program order, and returns their number. Calls `moves`
  /// before it moves each.
  size_t run(HoistListener moves = nullptr);

private:
  bool isHoistable(plan::LaunchOp launch);
  bool isOwnResult(plan::LaunchOp launch, mlir::Value buffer);
  void move(plan::LaunchOp launch, HoistListener moves);

  mlir::ModuleOp module;
  mlir::SymbolTable symbols;
  PrepareProgram prepare;
  std::map<std::vector<const void *>, plan::LaunchOp> known; // by kernel and operands
};

} // namespace bowline

#endif // BOWLINE_PASSES_HOISTING_PREPAREHOISTING_H
