//===- Padding.cpp - Dimensions grow until their axes divide them
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Sharding/Padding/Padding.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "passes/Analysis/ShardingState.h"
#include "passes/Sharding/Padding/Misfit.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;
using namespace bowline;
using dist::DistDialect;
using graph::FactorRule;

bool Padding::isNeeded(ModuleOp module, dist::MeshOp mesh) {
  bool needed = false;
  for (auto variable : module.getOps<graph::Variable>())
    if (auto sharding = variable->getAttrOfType<dist::ShardingAttr>(DistDialect::kShardingAttr))
      for (auto [size, dim] : llvm::zip_equal(variable.getTensorType().getShape(), sharding.getDims()))
        needed |= size % mesh.getSize(dim.getAxes()) != 0;
  return needed;
}

/// `sharded along "dp"`.
static std::string describeAxes(ArrayRef<StringAttr> axes) {
  if (axes.empty())
    return "whole on every rank";
  llvm::SmallSetVector<StringRef, 4> names;
  for (StringAttr axis : axes)
    names.insert(dist::wholeAxis(axis));
  return "sharded along \"" + llvm::join(names, "\", \"") + "\"";
}

LogicalResult Padding::verifyShards(ModuleOp module, dist::MeshOp mesh) {
  for (auto variable : module.getOps<graph::Variable>()) {
    auto sharding = variable->getAttrOfType<dist::ShardingAttr>(DistDialect::kShardingAttr);
    auto view = variable->getAttrOfType<DenseI64ArrayAttr>(DistDialect::kViewAttr);
    if (!sharding || !view) // a state gets the shards of its parameter
      continue;
    for (auto [dim, size] : llvm::enumerate(variable.getTensorType().getShape())) {
      ArrayRef<StringAttr> axes = sharding.getAxes(dim);
      if (size != static_cast<int64_t>(llvm::alignTo(view[dim], mesh.getSize(axes))))
        return variable->emitError() << "'" << variable.getVariableName() << "': dimension " << dim << " of "
                                     << view[dim] << " is " << describeAxes(axes) << ", and " << size
                                     << " where the sharding of other parameters pads it: a plan pads a tensor for its "
                                        "own axes alone; shard all that have this dimension along the same axes, or "
                                        "take a number of ranks that divides "
                                     << view[dim];
    }
  }
  return success();
}

LogicalResult Padding::run() {
  collect();
  findObstacles();
  for (auto &[grown, growth] : growths)
    if (failed(check(grown, growth)))
      return failure();
  if (!growths.empty())
    grow();
  return success();
}

//===----------------------------------------------------------------------===//
// Dimensions that must grow, and whether they can
//===----------------------------------------------------------------------===//

void Padding::collect() {
  llvm::MapVector<Class, int64_t> multiples;
  llvm::MapVector<Class, Growth> misfits;
  for (auto variable : module.getOps<graph::Variable>()) {
    RankedTensorType type = variable.getTensorType();
    auto sharding = variable->getAttrOfType<dist::ShardingAttr>(DistDialect::kShardingAttr);
    for (int64_t dim = 0; sharding && dim < type.getRank(); ++dim) {
      int64_t ranks = mesh.getSize(sharding.getAxes(dim));
      Class own = classes.of(variable.getVariableName(), dim);
      int64_t &multiple = multiples.try_emplace(own, 1).first->second;
      multiple = std::lcm(multiple, ranks); // at most 2^20: the ranks of one mesh
      if (type.getDimSize(dim) % ranks != 0)
        misfits.try_emplace(own, Growth{type.getDimSize(dim), 1, variable, dim});
    }
  }
  for (auto &[own, growth] : misfits) {
    growth.multiple = multiples[own];
    growth.to = llvm::alignTo(growth.to, growth.multiple);
    growths.insert({own, growth});
  }
}

static bool hasNeutralPadding(Operation *op) {
  auto model = dyn_cast<graph::PaddingModel>(op);
  return model && model.hasNeutralPadding();
}

/// Whether the class is a factor over which \p op combines elements, or exchanges them.
static bool combines(Operation *op, DimensionClasses &classes, DimensionClasses::Class grown) {
  std::optional<FactorRule> rule = factorRuleOf(op);
  for (auto [operand, dims] : llvm::zip(op->getOpOperands(), rule->operands))
    for (int64_t dim : classes.dimsIn(grown, operand))
      if (std::optional<int64_t> factor = soleFactor(*rule, dims[dim]);
          factor && (rule->factors[*factor].combine || rule->factors[*factor].kind == FactorRule::Kind::Exchanged))
        return true;
  return false;
}

void Padding::findObstacles() {
  auto note = [&](Class grown, auto why) {
    if (growths.contains(grown) && !obstacles.contains(grown))
      if (std::string obstacle = why(); !obstacle.empty())
        obstacles[grown] = std::move(obstacle);
  };
  for (auto function : module.getOps<graph::FuncOp>()) {
    for (Operation &op : function.getBody().front())
      if (!isa<graph::ReturnOp, graph::ReadOp>(op))
        for (Class grown : classes.classesOf(&op))
          note(grown, [&] {
            std::string obstacle = classes.findObstacle(&op, grown, /*pads=*/true);
            if (obstacle.empty() && !hasNeutralPadding(&op) && combines(&op, classes, grown))
              obstacle = op.getName().getStringRef().str() + " combines all of it";
            return obstacle;
          });
    for (BlockArgument argument : function.getArguments())
      for (int64_t dim = 0; dim < cast<RankedTensorType>(argument.getType()).getRank(); ++dim)
        note(classes.of(argument, dim), [&] {
          return "argument '" + function.getArgName(argument.getArgNumber()) + "' of @" + function.getName().str() +
                 " has it";
        });
  }
}

LogicalResult Padding::check(Class grown, const Growth &growth) {
  auto obstacle = obstacles.find(grown);
  if (obstacle == obstacles.end())
    return success();
  auto sharding = growth.variable->getAttrOfType<dist::ShardingAttr>(DistDialect::kShardingAttr);
  ArrayRef<StringAttr> axes = sharding.getAxes(growth.dim);
  int64_t ranks = mesh.getSize(axes);
  int64_t size =
      cast<RankedTensorType>(growth.variable->getAttrOfType<TypeAttr>("type").getValue()).getDimSize(growth.dim);
  InFlightDiagnostic diagnostic = growth.variable->emitError();
  diagnostic << "'" << SymbolTable::getSymbolName(growth.variable).getValue() << "': dimension " << growth.dim;
  describeMisfit(diagnostic, size, axes, ranks);
  diagnostic << " and cannot be padded, because " << obstacle->second;
  suggestSizes(diagnostic, size, growth.multiple);
  return diagnostic;
}

//===----------------------------------------------------------------------===//
// Growing
//===----------------------------------------------------------------------===//

/// \p type with the sizes of its class in \p growths; `classOf` gives that of a dimension.
template <typename Growths, typename ClassOf>
static RankedTensorType grownType(RankedTensorType type, const Growths &growths, ClassOf classOf) {
  SmallVector<int64_t> shape = llvm::to_vector(type.getShape());
  for (auto [dim, size] : llvm::enumerate(shape))
    if (auto it = growths.find(classOf(static_cast<int64_t>(dim))); it != growths.end())
      size = it->second.to;
  return RankedTensorType::get(shape, type.getElementType());
}

void Padding::growVariable(graph::Variable variable) {
  RankedTensorType type = variable.getTensorType();
  RankedTensorType grown =
      grownType(type, growths, [&](int64_t dim) { return classes.of(variable.getVariableName(), dim); });
  if (grown == type)
    return;
  variable.setTensorType(grown);
  if (!variable->hasAttr(DistDialect::kViewAttr))
    variable->setAttr(DistDialect::kViewAttr, DenseI64ArrayAttr::get(variable->getContext(), type.getShape()));
}

void Padding::grow() {
  for (auto function : module.getOps<graph::FuncOp>())
    growValues(function);
  for (auto variable : module.getOps<graph::Variable>())
    growVariable(variable);
}

void Padding::growValues(graph::FuncOp function) {
  // Classes refer to the types before the growth: find all new types first.
  SmallVector<std::pair<Value, RankedTensorType>> values;
  SmallVector<std::pair<OpOperand *, RankedTensorType>> constants;
  NeutralPadding::OldShapes oldShapes;
  for (Operation &op : function.getBody().front()) {
    for (Value result : op.getResults())
      if (auto type = dyn_cast<RankedTensorType>(result.getType()); type && !isFreeConstant(result))
        if (auto grown = grownType(type, growths, [&](int64_t dim) { return classes.of(result, dim); }); grown != type)
          values.push_back({result, grown});
    for (OpOperand &operand : op.getOpOperands())
      if (auto type = dyn_cast<RankedTensorType>(operand.get().getType()); type && isFreeConstant(operand.get()))
        if (auto grown = grownType(type, growths, [&](int64_t dim) { return classes.of(operand, dim); }); grown != type)
          constants.push_back({&operand, grown});
  }
  for (auto [operand, type] : constants) {
    OpBuilder builder(operand->getOwner());
    auto constant = cast<arith::ConstantOp>(builder.clone(*operand->get().getDefiningOp()));
    oldShapes[constant] = llvm::to_vector(cast<RankedTensorType>(constant.getType()).getShape());
    constant.getResult().setType(type);
    constant.setValueAttr(cast<DenseElementsAttr>(constant.getValue()).resizeSplat(type));
    operand->set(constant);
  }
  for (auto [value, type] : values) {
    ArrayRef<int64_t> shape = cast<RankedTensorType>(value.getType()).getShape();
    oldShapes[value] = llvm::to_vector(shape);
    if (auto model = value.getDefiningOp<graph::PaddingModel>())
      model.growResult(cast<OpResult>(value).getResultNumber(), type);
    else
      value.setType(type);
  }
  NeutralPadding(oldShapes).run(function);
}
