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
#include "kernels/registry/machine_model.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"

namespace bowline {

/// Seconds of the commands of a module: kernels by the larger of arithmetic and traffic, as their declarations state
/// them; communication on a ring of its group (as runtime/comm/link.h says, where the formulas are from) over the links
/// along its axes.
class CommandCost {
public:
  CommandCost(mlir::ModuleOp module, mlir::SymbolTable &symbols, const kernels::MachineModel &machine = {});

  /// Zero for signals and waits.
  double seconds(mlir::Operation *command);

private:
  double ofCollective(plan::CollectiveOp collective);
  llvm::SmallVector<mlir::StringAttr> axesOf(mlir::Operation *communication);
  kernels::LinkOptions linkAlong(llvm::ArrayRef<mlir::StringAttr> axes);

  mlir::SymbolTable &symbols;
  dist::MeshOp mesh;
  kernels::MachineModel machine;
  double threads = 1;
};

} // namespace bowline

#endif // BOWLINE_PASSES_ANALYSIS_COMMANDCOST_H
