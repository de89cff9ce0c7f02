//===- Localization.cpp - From global tensors to the part that each rank holds
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Local/Tensors/Localization.h"
#include "dialects/Graph/Movement.h"
#include "dialects/Stage/StageOps.h"
#include "kernels/registry/data_check.h"
#include "mlir/IR/Builders.h"
#include "passes/Analysis/KernelSignature.h"
#include "passes/Local/Tensors/ReshardPlan.h"

using namespace mlir;
using namespace bowline;
using dist::DistDialect;

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

LogicalResult Localization::check(Operation *op, const Twine &what, Type global, dist::ShardingAttr sharding) {
  if (!sharding)
    return op->emitOpError() << what << " has no sharding; run propagate-shardings first";
  auto type = cast<RankedTensorType>(global);
  if (sharding.getRank() != type.getRank())
    return op->emitOpError() << what << " of " << type << " has a sharding of " << sharding.getRank() << " dimensions";
  for (auto [dim, size] : llvm::enumerate(type.getShape()))
    if (int64_t ranks = mesh.getSize(sharding.getAxes(dim)); size % ranks != 0)
      return op->emitOpError() << what << ": dimension " << dim << " of " << type << " does not divide over " << ranks
                               << " ranks; choose another sharding";
  return success();
}

LogicalResult Localization::checkFunction(graph::FuncOp function) {
  for (BlockArgument argument : function.getArguments())
    if (unsigned index = argument.getArgNumber();
        failed(check(function, "argument '" + function.getArgName(index) + "'", argument.getType(),
                     function.getArgAttrOfType<dist::ShardingAttr>(index, DistDialect::kShardingAttr))))
      return failure();
  for (Operation &op : function.getBody().front())
    if (auto attrs = op.getAttrOfType<ArrayAttr>(DistDialect::kShardingsAttr))
      for (auto [result, sharding] : llvm::zip_equal(op.getResults(), attrs.getAsRange<dist::ShardingAttr>()))
        if (failed(check(&op, "result", result.getType(), sharding)))
          return failure();
  return success();
}

LogicalResult Localization::checkAll() {
  for (Operation &op : *module.getBody()) {
    auto sharding = op.getAttrOfType<dist::ShardingAttr>(DistDialect::kShardingAttr);
    if (auto variable = dyn_cast<graph::Variable>(op);
        variable && failed(check(&op, "it", variable.getTensorType(), sharding)))
      return failure();
    if (auto function = dyn_cast<graph::FuncOp>(op); function && failed(checkFunction(function)))
      return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Variables and functions
//===----------------------------------------------------------------------===//

RankedTensorType Localization::localType(Type global, dist::ShardingAttr sharding) {
  auto type = cast<RankedTensorType>(global);
  SmallVector<int64_t> shape = llvm::to_vector(type.getShape());
  for (auto [size, dim] : llvm::zip_equal(shape, sharding.getDims()))
    size /= mesh.getSize(dim.getAxes());
  return RankedTensorType::get(shape, type.getElementType());
}

dist::ShardingAttr Localization::shardingOf(Value value) {
  if (dist::ShardingAttr sharding = shardings.lookup(value))
    return sharding;
  return dist::ShardingAttr::replicated(value.getContext(), cast<RankedTensorType>(value.getType()).getRank());
}

void Localization::localizeVariable(graph::Variable variable) {
  auto sharding = variable->getAttrOfType<dist::ShardingAttr>(DistDialect::kShardingAttr);
  RankedTensorType global = variable.getTensorType();
  variable.setTensorType(localType(global, sharding));
  // A variable that was viewed or padded has its global shape in an attribute.
  Attribute shape = variable->getAttr(DistDialect::kViewAttr);
  if (!variable->hasAttr(DistDialect::kGlobalShapeAttr))
    variable->setAttr(DistDialect::kGlobalShapeAttr,
                      shape ? shape : DenseI64ArrayAttr::get(variable->getContext(), global.getShape()));
}

LogicalResult Localization::run() {
  if (failed(checkAll()))
    return failure();
  for (auto variable : module.getOps<graph::Variable>())
    localizeVariable(variable);
  for (auto function : module.getOps<graph::FuncOp>())
    localizeFunction(function);
  return success();
}

void Localization::localizeFunction(graph::FuncOp function) {
  shardings.clear();
  MLIRContext *context = function.getContext();
  for (BlockArgument argument : function.getArguments()) {
    unsigned index = argument.getArgNumber();
    auto sharding = function.getArgAttrOfType<dist::ShardingAttr>(index, DistDialect::kShardingAttr);
    auto global = cast<RankedTensorType>(argument.getType());
    function.setArgAttr(index, DistDialect::kGlobalShapeAttr, DenseI64ArrayAttr::get(context, global.getShape()));
    argument.setType(localType(global, sharding));
    shardings[argument] = sharding;
  }
  Block &body = function.getBody().front();
  for (Operation &op : body)
    if (auto attrs = op.getAttrOfType<ArrayAttr>(DistDialect::kShardingsAttr))
      for (auto [result, sharding] : llvm::zip_equal(op.getResults(), attrs.getAsRange<dist::ShardingAttr>()))
        shardings[result] = sharding;
  for (Operation &op : llvm::make_early_inc_range(body))
    localize(&op);
  function.setFunctionType(
      FunctionType::get(context, body.getArgumentTypes(), body.getTerminator()->getOperandTypes()));
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

void Localization::localize(Operation *op) {
  if (auto reshard = dyn_cast<dist::ReshardOp>(op))
    return localizeReshard(reshard);
  op->removeAttr(DistDialect::kShardingsAttr);
  for (OpResult result : op->getResults())
    result.setType(localType(result.getType(), shardingOf(result)));
  markInRange(op);
  if (auto model = dyn_cast<graph::ShardingModel>(op))
    model.localize(context);
}

/// The operand of an operation between ranks that moves elements.
static Value movedBetweenRanks(Operation *op) {
  bool moves = isa<dist::AllGatherOp, dist::AllToAllOp, dist::PermuteOp, dist::SliceOp, stage::TransferOp>(op);
  return moves ? op->getOperand(0) : Value();
}

/// The program computes with row numbers of a table that ranks divide, so that no later pass sees that callers keep
/// them in range: then the operation says so itself, as its kernel does.
void Localization::markInRange(Operation *op) {
  auto model = dyn_cast<graph::KernelModel>(op);
  const kernels::DataCheck *check = model ? kernels::FindDataCheck(std::string_view(model.kernelName())) : nullptr;
  if (!check || !check->is_row)
    return;
  Value table = tableOf(op, *check);
  ArrayRef<StringAttr> axes = context.axesOf(table, 0);
  int64_t rows = cast<RankedTensorType>(table.getType()).getDimSize(0) * context.countAlong(axes);
  if (!axes.empty() && graph::areKeptBelow(op->getOperand(check->argument), rows, movedBetweenRanks))
    op->setAttr(StringRef(kernels::kInRange), UnitAttr::get(op->getContext()));
}

void Localization::localizeReshard(dist::ReshardOp reshard) {
  OpBuilder builder(reshard);
  Value value = reshard.getInput();
  for (const ReshardStep &step : planReshard(shardingOf(value), reshard.getSharding())) {
    SmallVector<Attribute> attrs(step.axes.begin(), step.axes.end());
    ArrayAttr axes = builder.getArrayAttr(attrs);
    StringAttr why = reshard.getWhyAttr();
    auto type = cast<RankedTensorType>(value.getType());
    int64_t ranks = mesh.getSize(step.axes);
    SmallVector<int64_t> shape = llvm::to_vector(type.getShape());
    auto result = [&] { return RankedTensorType::get(shape, type.getElementType()); };
    auto dim = builder.getI64IntegerAttr(step.dim);
    Location loc = reshard.getLoc();
    auto sum = dist::ReduceKindAttr::get(builder.getContext(), dist::ReduceKind::Sum);
    switch (step.kind) {
    case ReshardStep::Kind::AllReduce:
      value = dist::AllReduceOp::create(builder, loc, type, sum, value, axes, why);
      break;
    case ReshardStep::Kind::ReduceScatter:
      shape[step.dim] /= ranks;
      value = dist::ReduceScatterOp::create(builder, loc, result(), sum, value, dim, axes, why);
      break;
    case ReshardStep::Kind::AllGather:
      shape[step.dim] *= ranks;
      value = dist::AllGatherOp::create(builder, loc, result(), value, dim, axes, why);
      break;
    case ReshardStep::Kind::AllToAll:
      shape[step.dim] /= ranks;
      shape[step.from] *= ranks;
      value =
          dist::AllToAllOp::create(builder, loc, result(), value, dim, builder.getI64IntegerAttr(step.from), axes, why);
      break;
    case ReshardStep::Kind::Slice:
      shape[step.dim] /= ranks;
      value = dist::SliceOp::create(builder, loc, result(), value, dim, axes);
      break;
    }
  }
  shardings[value] = reshard.getSharding();
  reshard.replaceAllUsesWith(value);
  reshard.erase();
}
