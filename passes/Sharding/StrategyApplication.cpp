//===- StrategyApplication.cpp - A strategy's choices become shardings of a module
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Sharding/StrategyApplication.h"
#include "dialects/Stage/StageOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "passes/Sharding/TensorParallel.h"
#include "llvm/Support/GlobPattern.h"

using namespace mlir;
using namespace bowline;

/// " of 6 does not divide over the 4 ranks along "dp"; the nearest valid sizes are 4 and 8".
static void describeMisfit(InFlightDiagnostic &diagnostic, int64_t size, ArrayRef<StringAttr> axes, int64_t ranks) {
  int64_t below = size / ranks * ranks;
  diagnostic << " of " << size << " does not divide over the " << ranks << " ranks along ";
  llvm::interleaveComma(axes, diagnostic);
  diagnostic << "; the nearest valid size" << (below > 0 ? "s are " : " is ");
  if (below > 0)
    diagnostic << below << " and ";
  diagnostic << below + ranks;
}

LogicalResult StrategyApplication::run() {
  replaceMesh();
  if (failed(shardParameters()))
    return failure();
  for (auto function : module.getOps<graph::FuncOp>())
    if (failed(shardBatch(function)))
      return failure();
  if (strategy.getSize(strategy.sequenceAxis) == 1)
    return success();
  WalkResult result = module.walk([&](graph::GatherOp gather) {
    return failed(cutSequence(gather)) ? WalkResult::interrupt() : WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

void StrategyApplication::replaceMesh() {
  SmallVector<StringRef> names;
  SmallVector<int64_t> sizes;
  for (const Strategy::Axis &axis : strategy.mesh) {
    names.push_back(axis.name);
    sizes.push_back(axis.size);
  }
  dist::MeshOp old = dist::MeshOp::of(module);
  OpBuilder builder(module.getContext());
  builder.setInsertionPointToStart(module.getBody());
  if (old)
    builder.setInsertionPoint(old);
  dist::MeshOp::create(builder, old ? old.getLoc() : module.getLoc(), old ? old.getSymName() : "mesh",
                       builder.getStrArrayAttr(names), sizes);
  if (old)
    old.erase();
}

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

static bool isMirror(graph::ParamOp param) { return param->hasAttr(stage::StageDialect::kMirrorOfAttr); }

LogicalResult StrategyApplication::shardParameters() {
  SmallVector<graph::ParamOp> params = llvm::to_vector(module.getOps<graph::ParamOp>());
  llvm::erase_if(params, [](graph::ParamOp param) { return isMirror(param); });
  for (graph::ParamOp param : params)
    param->setAttr(dist::DistDialect::kShardingAttr,
                   dist::ShardingAttr::replicated(module.getContext(), param.getTensorType().getRank()));
  llvm::SmallPtrSet<Operation *, 16> matched;
  for (const Strategy::Pattern &pattern : strategy.patterns)
    if (failed(applyPattern(pattern, params, matched)))
      return failure();
  llvm::erase_if(params, [&](graph::ParamOp param) { return matched.contains(param); });
  if (strategy.getSize(strategy.tensorAxis) > 1)
    shardByDefault(params);
  shardMirrors();
  return success();
}

/// The gradient of a mirror is added to its owner's, and its value copied: both in the same pieces.
void StrategyApplication::shardMirrors() {
  SymbolTable symbols(module);
  for (auto mirror : module.getOps<graph::ParamOp>())
    if (isMirror(mirror)) {
      auto owner = mirror->getAttrOfType<FlatSymbolRefAttr>(stage::StageDialect::kMirrorOfAttr);
      mirror->setAttr(dist::DistDialect::kShardingAttr,
                      symbols.lookup(owner.getValue())->getAttr(dist::DistDialect::kShardingAttr));
    }
}

void StrategyApplication::shardByDefault(ArrayRef<graph::ParamOp> params) {
  TensorParallel tensorParallel(module, strategy.getSize(strategy.tensorAxis));
  auto axis = StringAttr::get(module.getContext(), strategy.tensorAxis);
  for (graph::ParamOp param : params) {
    std::optional<int64_t> cut = tensorParallel.findCut(param);
    if (!cut)
      continue;
    SmallVector<SmallVector<StringAttr>> dims(param.getTensorType().getRank());
    dims[*cut].push_back(axis);
    param->setAttr(dist::DistDialect::kShardingAttr, dist::ShardingAttr::get(module.getContext(), dims));
  }
  for (const auto &[reason, whole] : tensorParallel.reasons()) {
    graph::ParamOp first = whole.front();
    InFlightDiagnostic remark = mlir::emitRemark(first.getLoc());
    remark << "'" << first.getName() << "'";
    if (size_t more = whole.size() - 1)
      remark << " and " << more << " more " << (more == 1 ? "parameter stay" : "parameters stay");
    else
      remark << " stays";
    remark << " whole on all " << strategy.getSize(strategy.tensorAxis) << " ranks along " << axis << ": " << reason;
  }
}

SmallVector<StringAttr> StrategyApplication::toAxes(ArrayRef<std::string> names) {
  MLIRContext *context = module.getContext();
  return llvm::map_to_vector(names, [&](StringRef name) { return StringAttr::get(context, name); });
}

SmallVector<StringAttr> StrategyApplication::batchAxes() { return toAxes(strategy.batchAxes); }

int64_t StrategyApplication::ranksOf(ArrayRef<StringAttr> axes) const {
  int64_t ranks = 1;
  for (StringAttr axis : axes)
    ranks *= strategy.getSize(axis);
  return ranks;
}

LogicalResult StrategyApplication::checkFit(const Strategy::Pattern &pattern, graph::ParamOp param) {
  RankedTensorType type = param.getTensorType();
  auto complain = [&] {
    InFlightDiagnostic diagnostic = mlir::emitError(pattern.location);
    diagnostic << "pattern \"" << pattern.glob << "\" matches '" << param.getName() << "'";
    return diagnostic;
  };
  if (pattern.sharding.getRank() != type.getRank())
    return complain() << " with " << type << ", which needs " << type.getRank() << " dimensions in its sharding, not "
                      << pattern.sharding.getRank();
  for (auto [dim, size] : llvm::enumerate(type.getShape())) {
    ArrayRef<StringAttr> axes = pattern.sharding.getAxes(dim);
    if (size % ranksOf(axes) == 0)
      continue;
    InFlightDiagnostic diagnostic = complain();
    diagnostic << ", whose dimension " << dim;
    describeMisfit(diagnostic, size, axes, ranksOf(axes));
    return diagnostic;
  }
  return success();
}

LogicalResult StrategyApplication::applyPattern(const Strategy::Pattern &pattern, ArrayRef<graph::ParamOp> params,
                                                llvm::SmallPtrSetImpl<Operation *> &matched) {
  auto glob = llvm::GlobPattern::create(pattern.glob, /*MaxSubPatterns=*/1024);
  if (!glob)
    return mlir::emitError(pattern.location) << "pattern \"" << pattern.glob << "\": " << toString(glob.takeError());
  bool any = false;
  for (graph::ParamOp param : params) {
    if (!glob->match(param.getName()))
      continue;
    if (failed(checkFit(pattern, param)))
      return failure();
    any = true;
    matched.insert(param);
    param->setAttr(dist::DistDialect::kShardingAttr, pattern.sharding);
  }
  if (any)
    return success();
  SmallVector<StringRef> names = llvm::map_to_vector(params, [](graph::ParamOp param) { return param.getName(); });
  InFlightDiagnostic diagnostic = mlir::emitError(pattern.location);
  diagnostic << "pattern \"" << pattern.glob << "\" matches no parameter";
  if (!names.empty())
    diagnostic << "; the nearest is '" << dist::findNearest(pattern.glob, names) << "'";
  return diagnostic;
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

/// The argument whose first dimension is the batch: the first of integers, as tokens are; else the first that has one.
static std::optional<BlockArgument> findBatch(graph::FuncOp function) {
  std::optional<BlockArgument> batch;
  for (BlockArgument argument : function.getArguments()) {
    auto type = cast<RankedTensorType>(argument.getType());
    if (type.getRank() == 0)
      continue;
    if (type.getElementType().isInteger())
      return argument;
    if (!batch)
      batch = argument;
  }
  return batch;
}

LogicalResult StrategyApplication::shardBatch(graph::FuncOp function) {
  std::optional<BlockArgument> batch = findBatch(function);
  SmallVector<StringAttr> axes = batchAxes();
  int64_t ranks = ranksOf(axes);
  if (!batch || ranks == 1)
    return success();
  int64_t size = cast<RankedTensorType>(batch->getType()).getDimSize(0);
  if (size % ranks != 0) {
    InFlightDiagnostic diagnostic = mlir::emitError(function.getLoc());
    diagnostic << "@" << function.getName() << ": the batch in '" << function.getArgName(batch->getArgNumber()) << "'";
    describeMisfit(diagnostic, size, axes, ranks);
    return diagnostic;
  }
  for (BlockArgument argument : function.getArguments()) {
    auto type = cast<RankedTensorType>(argument.getType());
    if (type.getRank() == 0 || type.getDimSize(0) != size)
      continue;
    SmallVector<SmallVector<StringAttr>> dims(type.getRank());
    dims.front() = axes;
    function.setArgAttr(argument.getArgNumber(), dist::DistDialect::kShardingAttr,
                        dist::ShardingAttr::get(module.getContext(), dims));
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Sequences
//===----------------------------------------------------------------------===//

/// Whether \p value is a parameter, perhaps rounded.
static bool isParameter(Value value) {
  while (isa_and_present<arith::TruncFOp, arith::ExtFOp>(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  auto read = value.getDefiningOp<graph::ReadOp>();
  return read && SymbolTable::lookupNearestSymbolFrom<graph::ParamOp>(read, read.getVariableAttr());
}

/// The result [batch, sequence, hidden] of a lookup is where the residual stream begins.
LogicalResult StrategyApplication::cutSequence(graph::GatherOp gather) {
  auto type = cast<RankedTensorType>(gather.getResult().getType());
  if (type.getRank() != 3 || !isParameter(gather.getTable()) || type.getDimSize(1) == 1)
    return success(); // one position at a time, when text is generated, is no sequence
  int64_t ranks = strategy.getSize(strategy.sequenceAxis);
  if (type.getDimSize(1) % ranks != 0) {
    InFlightDiagnostic diagnostic = mlir::emitError(gather.getLoc(), "the residual stream's sequence");
    describeMisfit(diagnostic, type.getDimSize(1), toAxes(strategy.sequenceAxis), ranks);
    return diagnostic;
  }
  MLIRContext *context = module.getContext();
  auto open = [&](ArrayRef<StringAttr> axes) { return dist::DimAttr::get(context, axes, /*open=*/true); };
  auto seed = dist::ShardingAttr::get(context, {open(batchAxes()), open(toAxes(strategy.sequenceAxis)), open({})}, {});
  gather->setAttr(dist::DistDialect::kShardingsAttr, ArrayAttr::get(context, {seed}));
  return success();
}
