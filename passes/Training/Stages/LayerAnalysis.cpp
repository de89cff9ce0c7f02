//===- LayerAnalysis.cpp - To which layer the operations of a model belong
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Training/Stages/LayerAnalysis.h"
#include "mlir/IR/SymbolTable.h"

#include <map>

using namespace mlir;
using namespace bowline;

FailureOr<int64_t> bowline::countLayers(ModuleOp module) {
  std::map<int64_t, graph::ParamOp> firstOf;
  for (auto param : module.getOps<graph::ParamOp>())
    if (std::optional<int64_t> layer = param.getLayer())
      firstOf.try_emplace(*layer, param);
  if (firstOf.empty())
    return module.emitError("no parameter says in which layer it is; write it, as in graph.param ... layer(0), or give "
                            "the mesh no axis for stages");
  int64_t count = 0;
  for (auto &[layer, param] : firstOf)
    if (layer != count++)
      return param.emitOpError("is in layer ")
             << layer << ", but none is in layer " << count - 1 << "; layers are counted from 0";
  return count;
}

LayerAnalysis::LayerAnalysis(graph::FuncOp function, int64_t layers)
    : body(function.getBody().front()), layers(layers), symbols(function->getParentOp()) {
  for (BlockArgument argument : function.getArguments())
    origins[argument].fromArguments = true;
  for (Operation &op : body) {
    Origin origin = originOf(&op);
    for (Value result : op.getResults())
      origins[result] = origin;
  }
}

LayerAnalysis::Origin LayerAnalysis::originOf(Operation *op) const {
  Origin result;
  if (auto read = dyn_cast<graph::ReadOp>(op)) {
    result.param = symbols.lookup<graph::ParamOp>(read.getVariable());
    if (!result.param)
      return result;
    result.kind = Kind::Weight;
    if (std::optional<int64_t> layer = result.param.getLayer())
      result.layer = *layer;
    return result;
  }
  for (Value operand : op->getOperands()) {
    Origin origin = origins.lookup(operand);
    result.layer = std::max(result.layer, origin.layer);
    result.fromArguments |= origin.fromArguments;
    bool isOther = origin.kind == Kind::Weight && result.param && result.param != origin.param;
    result.kind = isOther ? Kind::Activation : std::max(result.kind, origin.kind);
    if (origin.kind == Kind::Weight)
      result.param = origin.param;
  }
  if (result.kind == Kind::Weight && result.fromArguments)
    result.kind = Kind::Activation;
  return result;
}

int64_t LayerAnalysis::layerOf(Operation *op) const { return std::max<int64_t>(originOf(op).layer, 0); }

bool LayerAnalysis::isActivation(Operation *op) const {
  return !op->hasTrait<OpTrait::IsTerminator>() && originOf(op).kind == Kind::Activation;
}

static double costOf(Operation *op, double flopsPerByte) {
  if (isa<graph::ReadOp>(op) || graph::isView(op))
    return 0;
  auto model = dyn_cast<graph::CostModel>(op);
  return std::max(model ? model.flops() : 0, flopsPerByte * (model ? model.bytes() : graph::bytesTouched(op)));
}

std::vector<double> LayerAnalysis::costs(const targets::CostModel &model) const {
  std::vector<double> costs(layers, 0);
  DenseSet<Operation *> counted;
  auto count = [&](auto &&self, Operation *op, int64_t layer) -> void {
    if (!counted.insert(op).second)
      return;
    costs[layer] += costOf(op, model.FlopsPerByte());
    for (Value operand : op->getOperands()) // other forms of parameters, where they are used
      if (Operation *weight = operand.getDefiningOp(); weight && kindOf(operand) == Kind::Weight)
        self(self, weight, layer);
  };
  for (Operation &op : body)
    if (isActivation(&op))
      count(count, &op, layerOf(&op));
  return costs;
}
