//===- LayerAnalysis.h - To which layer the operations of a model belong
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_TRAINING_STAGES_LAYERANALYSIS_H
#define BOWLINE_PASSES_TRAINING_STAGES_LAYERANALYSIS_H

#include "dialects/Graph/GraphOps.h"
#include "targets/costs/cost_model.h"

#include <vector>

namespace bowline {

/// The number of layers, from the `layer` attributes of the module's parameters. Fails with a diagnostic at the module
/// if no parameter has a layer, or at a parameter if no parameter is in the layer before its own.
mlir::FailureOr<int64_t> countLayers(mlir::ModuleOp module);

/// Finds the parameters and layers on which the values of a forward function depend.
class LayerAnalysis {
public:
  enum class Kind {
    Free,      ///< depends on no parameter: every stage may compute it
    Weight,    ///< depends on one parameter only: a form of it, which each stage that uses it computes
    Activation ///< depends on more: belongs to a layer
  };

  /// \p layers is the number of layers of the function's module.
  LayerAnalysis(graph::FuncOp function, int64_t layers);

  Kind kindOf(mlir::Value value) const { return origins.lookup(value).kind; }
  /// The parameter that a weight is a form of.
  graph::ParamOp parameterOf(mlir::Value weight) const { return origins.lookup(weight).param; }
  /// The latest layer among the parameters that an operation depends on; 0 where it depends on none in a layer.
  int64_t layerOf(mlir::Operation *op) const;
  /// Returns whether an operation computes an activation, or uses one and has no result.
  bool isActivation(mlir::Operation *op) const;

  /// The cost of each layer in the forward pass, up to a common factor: the longer of arithmetic and memory traffic by
  /// the model. The first layer includes the operations before it, the last layer those after it.
  std::vector<double> costs(const targets::CostModel &model) const;

private:
  struct Origin {
    Kind kind = Kind::Free;
    bool fromArguments = false;
    int64_t layer = -1;
    graph::ParamOp param;
  };
  Origin originOf(mlir::Operation *op) const;

  mlir::Block &body;
  int64_t layers;
  mlir::SymbolTable symbols;
  llvm::DenseMap<mlir::Value, Origin> origins;
};

} // namespace bowline

#endif // BOWLINE_PASSES_TRAINING_STAGES_LAYERANALYSIS_H
