//===- DistStrategy.cpp - The strategy operation and its lines
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Dist/DistOps.h"
#include "mlir/IR/Builders.h"
#include "llvm/Support/GlobPattern.h"

using namespace mlir;
using namespace bowline::dist;

StringRef bowline::dist::findNearest(StringRef name, ArrayRef<StringRef> names) {
  StringRef nearest;
  unsigned best = UINT_MAX;
  name = name.take_front(256); // what follows says nothing, and its length is the user's
  for (StringRef candidate : names) {
    unsigned distance = name.edit_distance(candidate, /*AllowReplacements=*/true, /*MaxEditDistance=*/best - 1);
    if (distance < best) {
      best = distance;
      nearest = candidate;
    }
    if (best == 0)
      break;
  }
  return nearest;
}

//===----------------------------------------------------------------------===//
// StrategyOp
//===----------------------------------------------------------------------===//

StringRef StrategyOp::getDefaultDialect() { return DistDialect::getDialectNamespace(); }

MeshOp StrategyOp::getMesh() { return getOnly<MeshOp>(); }

static LogicalResult checkAxis(Operation *line, MeshOp mesh, StringRef axis) {
  if (mesh.getAxis(axis))
    return success();
  SmallVector<StringRef> names = llvm::to_vector(mesh.getAxisNames().getAsValueRange<StringAttr>());
  InFlightDiagnostic diagnostic = line->emitOpError("names axis \"") << axis << "\", which the mesh does not have";
  if (!names.empty())
    diagnostic << "; the nearest is \"" << findNearest(axis, names) << "\"";
  return diagnostic;
}

/// One line at most of each kind, and lines of strategies only.
static LogicalResult checkLines(StrategyOp strategy) {
  llvm::DenseMap<OperationName, Operation *> seen;
  for (Operation &line : strategy.getBody().front()) {
    if (!isa<MeshOp, BatchOp, TensorParallelOp, ShardOp, StagesOp, ScheduleOp, ZeroOp, SequenceParallelOp, RecomputeOp>(
            line))
      return line.emitOpError("is no line of a strategy");
    if (isa<ShardOp>(line) || seen.try_emplace(line.getName(), &line).second)
      continue;
    InFlightDiagnostic diagnostic = line.emitOpError("appears twice in one strategy; remove one");
    diagnostic.attachNote(seen[line.getName()]->getLoc()) << "the other one";
    return diagnostic;
  }
  return success();
}

static SmallVector<StringAttr> axesOf(Operation &line) {
  if (auto batch = dyn_cast<BatchOp>(line))
    return llvm::to_vector(batch.getAxes().getAsRange<StringAttr>());
  if (auto axis = line.getAttrOfType<StringAttr>("axis"))
    return {axis};
  return {};
}

LogicalResult StrategyOp::verifyRegions() {
  if (failed(checkLines(*this)))
    return failure();
  MeshOp mesh = getMesh();
  if (!mesh)
    return emitOpError("needs a line 'mesh', for instance: mesh @mesh [\"dp\", \"tp\"] [2, 2]");
  llvm::StringMap<Operation *> roles;
  for (Operation &line : getBody().front()) {
    if (auto shard = dyn_cast<ShardOp>(line)) {
      for (DimAttr dim : shard.getSharding().getDims())
        for (StringAttr axis : dim.getAxes())
          if (failed(checkAxis(shard, mesh, axis)))
            return failure();
      continue;
    }
    for (StringAttr axis : axesOf(line)) {
      if (failed(checkAxis(&line, mesh, axis)))
        return failure();
      if (!isa<BatchOp, TensorParallelOp, StagesOp>(line))
        continue;
      auto [other, inserted] = roles.try_emplace(axis.getValue(), &line);
      if (!inserted)
        return line.emitOpError("takes axis ") << axis << ", which is that of '" << other->second->getName() << "'";
    }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Lines
//===----------------------------------------------------------------------===//

LogicalResult BatchOp::verify() {
  if (getAxes().empty())
    return emitOpError("names no axis");
  for (auto [index, axis] : llvm::enumerate(getAxes()))
    if (llvm::is_contained(getAxes().getValue().take_front(index), axis))
      return emitOpError("names axis ") << axis << " twice; remove one";
  return success();
}

LogicalResult ShardOp::verify() {
  // Braces multiply: the bound keeps a pattern from becoming a program.
  auto glob = llvm::GlobPattern::create(getPattern(), /*MaxSubPatterns=*/1024);
  if (!glob)
    return emitOpError("has the pattern \"") << getPattern() << "\": " << llvm::toString(glob.takeError());
  if (!getSharding().getUnreduced().empty())
    return emitOpError("has unreduced axes; a parameter is a value, not a sum of parts");
  return success();
}

LogicalResult ScheduleOp::verify() {
  if (getMicrobatches().value_or(1) < 1)
    return emitOpError("has ") << *getMicrobatches() << " microbatches; the nearest valid number is 1";
  return success();
}

LogicalResult ZeroOp::verify() {
  if (int64_t level = getLevel(); level < 0 || level > 3)
    return emitOpError("has level ") << level << "; the nearest of 0 to 3 is " << (level < 0 ? 0 : 3);
  return success();
}

LogicalResult RecomputeOp::verify() {
  static constexpr StringRef kKinds[] = {"none", "selective", "full", "auto"};
  if (!llvm::is_contained(kKinds, getActivations()))
    return emitOpError("has \"") << getActivations() << "\"; the nearest of none, selective, full and auto is \""
                                 << findNearest(getActivations(), kKinds) << "\"";
  return success();
}
