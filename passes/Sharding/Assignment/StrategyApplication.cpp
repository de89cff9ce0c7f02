//===- StrategyApplication.cpp - A strategy's choices become shardings of a module
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Sharding/Assignment/StrategyApplication.h"
#include "dialects/Stage/StageOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "passes/Analysis/ShardingState.h"
#include "passes/Sharding/Assignment/AxisDivision.h"
#include "passes/Sharding/Assignment/DimensionSplit.h"
#include "passes/Sharding/Padding/Misfit.h"
#include "runtime/base/edit_distance.h"

using namespace mlir;
using namespace bowline;

/// Remarks at lines that divide along an axis of one rank.
void StrategyApplication::remarkLoneAxes() {
  auto remark = [&](Location line, StringRef axis) {
    if (!axis.empty() && strategy.getSize(axis) == 1)
      mlir::emitRemark(line) << "nothing is divided along \"" << axis << "\", which has one rank";
  };
  dist::StrategyOp lines = dist::StrategyOp::of(module);
  auto zero = lines ? lines.getOnly<dist::ZeroOp>() : dist::ZeroOp();
  if (zero && strategy.zeroLevel > 0)
    remark(zero.getLoc(), strategy.zeroAxis);
  if (auto sequence = lines ? lines.getOnly<dist::SequenceParallelOp>() : dist::SequenceParallelOp())
    remark(sequence.getLoc(), strategy.sequenceAxis);
  for (const Strategy::Pattern &pattern : strategy.patterns)
    for (dist::DimAttr dim : pattern.sharding.getDims())
      for (StringAttr axis : dim.getAxes())
        remark(pattern.location, axis);
}

LogicalResult StrategyApplication::apply() {
  remarkLoneAxes();
  replaceMesh();
  if (failed(shardParameters()))
    return failure();
  for (auto function : module.getOps<graph::FuncOp>())
    if (failed(shardBatch(function)))
      return failure();
  if (strategy.getSize(strategy.sequenceAxis) == 1)
    return success();
  return shardSequences();
}

LogicalResult StrategyApplication::run() {
  if (failed(apply()))
    return failure();
  if (keyPieces > 0)
    divideAxis(module, strategy.tensorAxis, keyPieces);
  return success();
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
  auto mesh = dist::MeshOp::create(builder, old ? old.getLoc() : module.getLoc(), old ? old.getSymName() : "mesh",
                                   builder.getStrArrayAttr(names), sizes);
  Block::iterator place = module.getBody()->begin();
  if (old) {
    place = std::next(Block::iterator(old));
    old.erase();
  }
  SymbolTable(module).insert(mesh, place); // under another name where the model has this one
}

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

LogicalResult StrategyApplication::shardParameters() {
  SmallVector<graph::ParamOp> params = llvm::to_vector(module.getOps<graph::ParamOp>());
  llvm::erase_if(params, [](graph::ParamOp param) { return param.isMirror(); });
  for (graph::ParamOp param : params)
    param->setAttr(dist::DistDialect::kShardingAttr,
                   dist::ShardingAttr::replicated(module.getContext(), param.getTensorType().getRank()));
  DeciderMap deciders;
  for (const Strategy::Pattern &pattern : strategy.patterns)
    if (failed(applyPattern(pattern, params, deciders)))
      return failure();
  if (failed(checkDeciders(deciders)))
    return failure();
  llvm::erase_if(params, [&](graph::ParamOp param) { return deciders.contains(param); });
  if (strategy.getSize(strategy.tensorAxis) > 1 && failed(shardByDefault(params)))
    return failure();
  shardMirrors();
  return success();
}

/// The gradient of a mirror is added to its owner's, and its value copied: both in the same pieces.
void StrategyApplication::shardMirrors() {
  SymbolTable symbols(module);
  for (auto mirror : module.getOps<graph::ParamOp>())
    if (mirror.isMirror())
      mirror->setAttr(dist::DistDialect::kShardingAttr,
                      symbols.lookup(*mirror.getMirrorOf())->getAttr(dist::DistDialect::kShardingAttr));
}

LogicalResult StrategyApplication::shardByDefault(ArrayRef<graph::ParamOp> params) {
  TensorParallel tensorParallel(module, strategy.tensorAxis, strategy.getSize(strategy.tensorAxis),
                                [this](int64_t ranks) { return allowsTensorRanks(ranks); });
  SmallVector<std::pair<graph::ParamOp, TensorParallel::Sharding>> shardings;
  for (graph::ParamOp param : params) {
    FailureOr<std::optional<TensorParallel::Sharding>> sharding = tensorParallel.findSharding(param);
    if (failed(sharding))
      return failure();
    if (*sharding)
      shardings.push_back({param, **sharding});
  }
  splitFused(shardings, params, tensorParallel);
  for (auto &[param, sharding] : shardings) {
    if (sharding.pieces > 0 && keyPieces > 0 && sharding.pieces != keyPieces)
      tensorParallel.keepWhole(param, "other layers have another number of key heads");
    else
      shardParameter(param, sharding);
  }
  for (const auto &[reason, whole] : tensorParallel.reasons())
    remarkWhole(reason, whole);
  return success();
}

void StrategyApplication::splitFused(SmallVectorImpl<std::pair<graph::ParamOp, TensorParallel::Sharding>> &shardings,
                                     ArrayRef<graph::ParamOp> params, TensorParallel &tensorParallel) {
  if (llvm::none_of(shardings, [](const auto &sharding) { return sharding.second.parts > 1; }))
    return;
  repeatFreeValues(module);
  DimensionSplit split(module);
  for (auto &[param, sharding] : shardings)
    if (sharding.parts > 1)
      split.ask(param.getName(), sharding.dim, sharding.parts);
  llvm::SmallPtrSet<Operation *, 16> free(params.begin(), params.end());
  for (auto param : module.getOps<graph::ParamOp>())
    if (!free.contains(param) && !param.isMirror())
      split.keep(param.getName(), param.getTensorType().getRank());
  split.run();
  llvm::erase_if(shardings, [&](auto &sharding) {
    bool whole = sharding.second.parts > 1 && !split.isSplit(sharding.first.getName(), sharding.second.dim);
    if (whole)
      tensorParallel.keepWhole(sharding.first, "something needs queries, keys and values as one");
    return whole;
  });
}

void StrategyApplication::shardParameter(graph::ParamOp param, const TensorParallel::Sharding &sharding) {
  MLIRContext *context = module.getContext();
  SmallVector<SmallVector<StringAttr>> dims(param.getTensorType().getRank());
  std::string axis = strategy.tensorAxis;
  if (sharding.pieces > 0) {
    keyPieces = sharding.pieces;
    axis = partOfAxis(axis, 0);
  }
  dims[sharding.parts > 1 ? sharding.dim + 1 : sharding.dim].push_back(StringAttr::get(context, axis));
  param->setAttr(dist::DistDialect::kShardingAttr, dist::ShardingAttr::get(context, dims));
}

void StrategyApplication::remarkWhole(StringRef reason, ArrayRef<graph::ParamOp> whole) {
  graph::ParamOp first = whole.front();
  InFlightDiagnostic remark = mlir::emitRemark(first.getLoc());
  remark << "'" << first.getName() << "'";
  if (size_t more = whole.size() - 1)
    remark << " and " << more << " more " << (more == 1 ? "parameter stay" : "parameters stay");
  else
    remark << " stays";
  remark << " whole on all " << strategy.getSize(strategy.tensorAxis) << " ranks along \"" << strategy.tensorAxis
         << "\": " << reason;
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
  return success();
}

LogicalResult StrategyApplication::applyPattern(const Strategy::Pattern &pattern, ArrayRef<graph::ParamOp> params,
                                                DeciderMap &deciders) {
  auto glob = llvm::GlobPattern::create(pattern.glob, dist::kMaxPatternWords);
  if (!glob)
    return mlir::emitError(pattern.location) << "pattern \"" << pattern.glob << "\": " << toString(glob.takeError());
  bool any = false;
  for (graph::ParamOp param : params) {
    if (!matches(*glob, param))
      continue;
    if (failed(checkFit(pattern, param)))
      return failure();
    any = true;
    deciders[param] = &pattern;
    param->setAttr(dist::DistDialect::kShardingAttr, pattern.sharding);
  }
  if (any)
    return success();
  SmallVector<StringRef> names;
  for (graph::ParamOp param : params)
    names.append({param.getName(), param.getKey()});
  InFlightDiagnostic diagnostic = mlir::emitError(pattern.location);
  diagnostic << "pattern \"" << pattern.glob << "\" matches no parameter";
  if (!names.empty())
    diagnostic << "; the nearest is '" << *FindNearest(pattern.glob, names) << "'";
  return diagnostic;
}

/// The last match counts: a pattern whose parameters all have a later one says nothing.
LogicalResult StrategyApplication::checkDeciders(const DeciderMap &deciders) {
  for (const Strategy::Pattern &pattern : strategy.patterns)
    if (llvm::none_of(deciders, [&](const auto &entry) { return entry.second == &pattern; }))
      return mlir::emitError(pattern.location)
             << "pattern \"" << pattern.glob
             << "\" decides nothing, as later ones match all of its parameters, and the last one counts; remove it, or "
                "move it behind them";
  return success();
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
    suggestSizes(diagnostic, size, ranks);
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

/// Whether \p value is the embedding, perhaps rounded: a parameter that has the role.
static bool isEmbedding(Value value) {
  while (isa_and_present<arith::TruncFOp, arith::ExtFOp>(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  auto read = value.getDefiningOp<graph::ReadOp>();
  auto param = read ? SymbolTable::lookupNearestSymbolFrom<graph::ParamOp>(read, read.getVariableAttr()) : nullptr;
  return param && param.getRoleAttr() && param.getRoleAttr().getKind() == graph::RoleKind::Vocabulary;
}

/// Where tokens [batch, sequence] are looked up in the embedding, the residual stream begins. One position at a time,
/// when text is generated, is no sequence.
static bool isResidualStream(graph::GatherOp gather) {
  auto tokens = cast<RankedTensorType>(gather.getIndices().getType());
  return isEmbedding(gather.getTable()) && tokens.getRank() == 2 && tokens.getDimSize(1) > 1;
}

static SmallVector<graph::GatherOp> findResidualStreams(ModuleOp module) {
  SmallVector<graph::GatherOp> streams;
  // By name: rows of the embedding are looked up by this operation alone.
  module.walk([&](graph::GatherOp gather) {
    if (isResidualStream(gather))
      streams.push_back(gather);
  });
  return streams;
}

bool StrategyApplication::allowsTensorRanks(int64_t ranks) {
  if (strategy.countRanks() / strategy.getSize(strategy.tensorAxis) > dist::MeshOp::kMaxRanks / ranks)
    return false;
  return strategy.sequenceAxis != strategy.tensorAxis ||
         llvm::all_of(findResidualStreams(module), [&](graph::GatherOp gather) {
           return cast<RankedTensorType>(gather.getResult().getType()).getDimSize(1) % ranks == 0;
         });
}

LogicalResult StrategyApplication::shardSequences() {
  SmallVector<graph::GatherOp> streams = findResidualStreams(module);
  if (streams.empty())
    return dist::StrategyOp::of(module).getOnly<dist::SequenceParallelOp>().emitOpError(
        "finds no residual stream: no function looks up tokens [batch, sequence], of several positions, in a parameter "
        "with role(vocabulary); give the embedding its role, or remove the line");
  return success(llvm::all_of(streams, [&](graph::GatherOp gather) { return succeeded(shardSequence(gather)); }));
}

LogicalResult StrategyApplication::shardSequence(graph::GatherOp gather) {
  auto type = cast<RankedTensorType>(gather.getResult().getType());
  int64_t ranks = strategy.getSize(strategy.sequenceAxis);
  if (type.getDimSize(1) % ranks != 0) {
    InFlightDiagnostic diagnostic = mlir::emitError(gather.getLoc(), "the residual stream's sequence");
    describeMisfit(diagnostic, type.getDimSize(1), toAxes(strategy.sequenceAxis), ranks);
    suggestSizes(diagnostic, type.getDimSize(1), ranks);
    return diagnostic;
  }
  MLIRContext *context = module.getContext();
  auto open = [&](ArrayRef<StringAttr> axes) { return dist::DimAttr::get(context, axes, /*open=*/true); };
  auto seed = dist::ShardingAttr::get(context, {open(batchAxes()), open(toAxes(strategy.sequenceAxis)), open({})}, {});
  gather->setAttr(dist::DistDialect::kShardingsAttr, ArrayAttr::get(context, {seed}));
  gather->setAttr(kOriginAttr, StringAttr::get(context, kSequenceParallelism));
  return success();
}
