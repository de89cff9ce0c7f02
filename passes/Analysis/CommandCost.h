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
#include "targets/costs/cost_model.h"

namespace bowline {

/// The seconds that the commands of a module take, as the cost model estimates from their kernels' declarations, bytes
/// and groups.
class CommandCost {
public:
  CommandCost(mlir::ModuleOp module, mlir::SymbolTable &symbols, targets::CostModel model)
      : symbols(symbols), mesh(dist::MeshOp::of(module)), model(std::move(model)) {}

  /// The estimated seconds of a command; zero for signals and waits.
  double seconds(mlir::Operation *command);

private:
  double ofCollective(plan::CollectiveOp collective);
  llvm::SmallVector<mlir::StringAttr> axesOf(mlir::Operation *communication);
  targets::LinkOptions linkAlong(llvm::ArrayRef<mlir::StringAttr> axes);

  mlir::SymbolTable &symbols;
  dist::MeshOp mesh;
  targets::CostModel model;
};

} // namespace bowline

#endif // BOWLINE_PASSES_ANALYSIS_COMMANDCOST_H
