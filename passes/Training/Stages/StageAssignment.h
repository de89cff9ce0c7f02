//===- StageAssignment.h - A model divided into pipeline stages
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_TRAINING_STAGES_STAGEASSIGNMENT_H
#define BOWLINE_PASSES_TRAINING_STAGES_STAGEASSIGNMENT_H

#include "dialects/Graph/GraphOps.h"
#include "passes/Strategy/Strategy.h"
#include "passes/Training/Stages/LayerAnalysis.h"
#include "passes/Training/Stages/LayerPartition.h"
#include "llvm/ADT/MapVector.h"

#include <set>

namespace bowline {

/// Divides the loss function of a module into the virtual stages of a strategy. Inserts a chain of `stage.transfer`,
/// from neighbour to neighbour, for each value that crosses stages, and a mirror of each parameter that a second stage
/// uses. Sets `stage.count` on the module and `stage.index` on its parameters.
class StageAssignment {
public:
  /// `location` is that of the strategy's line about stages, for messages. `strategy` outlives the assignment.
  StageAssignment(mlir::ModuleOp module, const Strategy &strategy, mlir::Location location)
      : module(module), symbols(module), strategy(strategy), location(location) {}

  /// Fails with a diagnostic that names the nearest valid choice, having changed nothing.
  mlir::LogicalResult run();

private:
  mlir::FailureOr<std::vector<LayerRange>> divide(int64_t layers, const LayerAnalysis &analysis);
  mlir::FailureOr<int64_t> countStages();
  /// Advises changes where there are fewer layers than stages: choices that the schedule was asked about.
  std::string adviseFewerStages(int64_t layers, int64_t chunks);
  void assignParameters(graph::FuncOp function, const LayerAnalysis &analysis);
  void visit(mlir::Operation *op, const LayerAnalysis &analysis);
  /// An activation in a stage at or behind its own.
  mlir::Value transferred(mlir::Value value, int64_t stage);
  /// A form of a parameter, made from the mirror that `stage` has.
  mlir::Value mirrored(mlir::Value value, int64_t stage, const LayerAnalysis &analysis);
  graph::ParamOp mirrorOf(graph::ParamOp owner, int64_t stage);

  mlir::ModuleOp module;
  mlir::SymbolTable symbols;
  const Strategy &strategy;
  mlir::Location location;
  /// The stage of each layer.
  std::vector<int64_t> stageOfLayer;
  /// The stage in which each activation is computed.
  llvm::DenseMap<mlir::Value, int64_t> stageOf;
  /// The stages that use a parameter; the first one owns it.
  llvm::MapVector<mlir::Operation *, std::set<int64_t>> users;
  llvm::DenseMap<std::pair<mlir::Value, int64_t>, mlir::Value> copies;
  llvm::DenseMap<std::pair<mlir::Operation *, int64_t>, graph::ParamOp> mirrors;
};

} // namespace bowline

#endif // BOWLINE_PASSES_TRAINING_STAGES_STAGEASSIGNMENT_H
