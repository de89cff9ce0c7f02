//===- DistStrategy.cpp - The strategy operation and its lines
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Dist/DistOps.h"
#include "dialects/Dist/ModuleLookup.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "runtime/base/edit_distance.h"
#include "llvm/Support/GlobPattern.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::dist;

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

/// Refuses an operation that the dialect does not have, such as a line of a strategy with a wrong name.
static ParseResult parseUnknownOperation(OpAsmParser &parser, OperationState &state) {
  SmallVector<StringRef> names, lines;
  for (RegisteredOperationName known :
       parser.getContext()->getRegisteredOperationsByDialect(DistDialect::getDialectNamespace())) {
    names.push_back(known.stripDialect());
    if (known.hasTrait<OpTrait::HasParent<StrategyOp>::Impl>() || names.back() == "mesh")
      lines.push_back(names.back());
  }
  StringRef name = state.name.stripDialect();
  auto longer = llvm::find_if(names, [&](StringRef known) { return known.starts_with(name); });
  StringRef nearest = longer != names.end() ? *longer : *FindNearest(name, names);
  InFlightDiagnostic diagnostic = parser.emitError(parser.getNameLoc());
  if (longer != names.end() || EditDistance(name, nearest) <= std::max<size_t>(name.size() / 3, 1))
    return diagnostic << "is unknown; the nearest is '" << nearest << "'";
  llvm::sort(lines);
  diagnostic << "is unknown; the lines of a strategy are ";
  llvm::interleaveComma(lines, diagnostic);
  return diagnostic;
}

LogicalResult bowline::dist::verifyNoFurtherAttributes(Operation *op) {
  auto further = op->getDiscardableAttrs();
  if (further.empty())
    return success();
  InFlightDiagnostic diagnostic = op->emitOpError("has attribute '")
                                  << (*further.begin()).getName().getValue() << "', which nothing reads; remove it";
  diagnostic << ": its attributes are ";
  llvm::interleaveComma(op->getName().getAttributeNames(), diagnostic,
                        [&](StringAttr name) { diagnostic << name.getValue(); });
  return diagnostic;
}

std::optional<Dialect::ParseOpHook> DistDialect::getParseOperationHook(StringRef name) const {
  if (std::optional<ParseOpHook> hook = Dialect::getParseOperationHook(name))
    return hook;
  return ParseOpHook(parseUnknownOperation);
}

//===----------------------------------------------------------------------===//
// StrategyOp
//===----------------------------------------------------------------------===//

StringRef StrategyOp::getDefaultDialect() { return DistDialect::getDialectNamespace(); }

StrategyOp StrategyOp::of(Operation *op) { return firstAround<StrategyOp>(op); }

MeshOp StrategyOp::getMesh() { return getOnly<MeshOp>(); }

static LogicalResult checkAxis(Operation *line, MeshOp mesh, StringRef axis) {
  if (mesh.getAxis(axis))
    return success();
  SmallVector<StringRef> names = llvm::to_vector(mesh.getAxisNames().getAsValueRange<StringAttr>());
  InFlightDiagnostic diagnostic = line->emitOpError("names axis \"") << axis << "\", which the mesh does not have";
  if (!names.empty())
    diagnostic << "; the nearest is \"" << *FindNearest(axis, names) << "\"";
  return diagnostic;
}

/// The usual name of the axis that a line is about.
static StringRef usualAxisOf(Operation &line) {
  if (isa<StagesOp, ScheduleOp>(line))
    return "pp";
  return isa<BatchOp, ZeroOp, BucketBytesOp>(line) ? "dp" : "tp";
}

/// Only lines of strategies, of each kind at most one, and without a mesh none that is about several ranks.
static LogicalResult checkLines(StrategyOp strategy) {
  llvm::DenseMap<OperationName, Operation *> seen;
  for (Operation &line : strategy.getBody().front()) {
    if (!isa<MeshOp>(line) && !line.hasTrait<OpTrait::HasParent<StrategyOp>::Impl>())
      return line.emitOpError("is no line of a strategy");
    if (!isa<ShardOp>(line) && !seen.try_emplace(line.getName(), &line).second) {
      InFlightDiagnostic diagnostic = line.emitOpError("appears twice in one strategy; remove one");
      diagnostic.attachNote(seen[line.getName()]->getLoc()) << "the other one";
      return diagnostic;
    }
    if (!strategy.getMesh() && !isa<MicrobatchesOp, RecomputeOp>(line))
      return line.emitOpError("is about several ranks, and the strategy has none; add a mesh of N ranks, --mesh ")
             << usualAxisOf(line) << "=N, or in a file: mesh @mesh [\"" << usualAxisOf(line) << "\"] [N]";
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
        return line.emitOpError("takes axis ") << axis << ", which '" << other->second->getName() << "' takes too";
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
  auto glob = llvm::GlobPattern::create(getPattern(), kMaxPatternWords);
  if (!glob)
    return emitOpError("has the pattern \"") << getPattern() << "\": " << llvm::toString(glob.takeError());
  if (!getSharding().getUnreduced().empty())
    return emitOpError("has unreduced axes; a parameter is a value, not a sum of parts");
  return success();
}

LogicalResult ZeroOp::verify() {
  int64_t level = getLevel(), prefetch = getPrefetch().value_or(0);
  if (level < 0 || level > 3)
    return emitOpError("has level ") << level << "; the nearest of 0 to 3 is " << (level < 0 ? 0 : 3);
  if (getAxis() && level == 0)
    return emitOpError("names axis \"")
           << *getAxis() << "\" with level 0, which divides nothing along it; remove it, or use level 1, 2 or 3";
  if (getPrefetch() && level != 3)
    return emitOpError("prefetches with level ")
           << level << ", which gathers no parameters ahead of use; remove it, or use level 3";
  if ((getOnce() || getEach()) && level != 3)
    return emitOpError("gathers ") << (getOnce() ? "once" : "for each microbatch") << " with level " << level
                                   << ", which gathers no parameters; remove it, or use level 3";
  if (getOnce() && getEach())
    return emitOpError("gathers once and for each microbatch; remove 'once' or 'each'");
  if (prefetch < 0)
    return emitOpError("prefetches ") << prefetch << " gathers ahead of use; the nearest valid number is 0";
  return success();
}

LogicalResult MicrobatchesOp::verify() {
  if (int64_t count = getCount(); count < 1)
    return emitOpError("has the number ") << count << "; the nearest valid one is 1";
  return success();
}

bool ScheduleOp::isTable() { return getSchedule().ends_with_insensitive(".csv"); }

LogicalResult ScheduleOp::verify() {
  if (getTable() && !isTable())
    return emitOpError("has a table, but \"")
           << getSchedule() << "\" is a schedule of its own; a table has a name that ends with .csv";
  return success();
}

LogicalResult RecomputeOp::verify() {
  static constexpr StringRef kKinds[] = {"none", "selective", "full", "auto"};
  if (!llvm::is_contained(kKinds, getActivations()))
    return emitOpError("has \"") << getActivations() << "\"; the nearest of none, selective, full and auto is \""
                                 << *FindNearest(getActivations(), kKinds) << "\"";
  return success();
}

LogicalResult BucketBytesOp::verify() {
  if (int64_t bytes = getBytes(); bytes < 0)
    return emitOpError("has the number ") << bytes << "; the nearest valid one is 0";
  return success();
}

LogicalResult OverlapChunksOp::verify() {
  if (int64_t count = getCount().value_or(1); count < 1)
    return emitOpError("has the number ") << count << "; the nearest valid choices are 1 and auto";
  return success();
}

//===----------------------------------------------------------------------===//
// Values that the lines give, or their defaults
//===----------------------------------------------------------------------===//

template <typename LineOp> static LineOp lineOf(Operation *op) {
  StrategyOp strategy = StrategyOp::of(op);
  return strategy ? strategy.getOnly<LineOp>() : LineOp();
}

int64_t bowline::dist::microbatchesOf(Operation *op) {
  auto line = lineOf<MicrobatchesOp>(op);
  return line ? line.getCount() : 1;
}

StringRef bowline::dist::recomputeOf(Operation *op) {
  auto line = lineOf<RecomputeOp>(op);
  return line ? line.getActivations() : "none";
}

int64_t bowline::dist::bucketBytesOf(Operation *op) {
  auto line = lineOf<BucketBytesOp>(op);
  return line ? line.getBytes() : int64_t{25} << 20;
}

std::optional<int64_t> bowline::dist::overlapChunksOf(Operation *op) {
  auto line = lineOf<OverlapChunksOp>(op);
  if (line && !line.getCount())
    return std::nullopt;
  return line ? *line.getCount() : 1;
}
