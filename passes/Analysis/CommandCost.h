//===- CommandCost.h - About how long commands take
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_ANALYSIS_COMMANDCOST_H
#define BOWLINE_PASSES_ANALYSIS_COMMANDCOST_H

#include "dialects/Dist/DistOps.h"
#include "dialects/Plan/PlanOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"

namespace bowline {

/// What a machine does in a second. Orders of commands are chosen by it, and results never depend on it.
struct MachineModel {
  double flops = 80e9;        ///< of a thread
  double bytes = 5e9;         ///< that a thread moves from and to memory
  double launch = 1e-6;       ///< seconds that any command takes at least
  double linkBytes = 1e9;     ///< per second, in each direction
  double linkLatency = 20e-6; ///< seconds
};

/// Seconds of the commands of a module: kernels by the larger of arithmetic and traffic, as their declarations state
/// them; communication on a ring of its group (as runtime/comm/link.h says, where the formulas are from).
class CommandCost {
public:
  CommandCost(mlir::ModuleOp module, mlir::SymbolTable &symbols, MachineModel machine = {});

  /// Zero for signals and waits.
  double seconds(mlir::Operation *command);

private:
  double ofCollective(plan::CollectiveOp collective);
  int64_t groupSize(llvm::StringRef communicator);

  mlir::SymbolTable &symbols;
  dist::MeshOp mesh;
  MachineModel machine;
  double threads = 1;
};

} // namespace bowline

#endif // BOWLINE_PASSES_ANALYSIS_COMMANDCOST_H
