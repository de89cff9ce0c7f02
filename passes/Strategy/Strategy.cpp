//===- Strategy.cpp - The choices of a strategy, with its defaults
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Strategy/Strategy.h"
#include "runtime/base/edit_distance.h"

using namespace mlir;
using namespace bowline;

/// The part of a user's text that goes into a message.
static std::string quote(StringRef text) { return "'" + text.take_front(200).str() + "'"; }

//===----------------------------------------------------------------------===//
// Layers of stages
//===----------------------------------------------------------------------===//

/// "[0..5]", or "[3]" for a single layer.
static std::optional<Strategy::LayerRange> parseRange(StringRef text) {
  Strategy::LayerRange range;
  if (!text.consume_front("[") || !text.consume_back("]"))
    return std::nullopt;
  auto [first, last] = text.split("..");
  if (!text.contains(".."))
    last = first;
  if (first.trim().getAsInteger(10, range.first) || last.trim().getAsInteger(10, range.second))
    return std::nullopt;
  return range;
}

/// "balanced" (an empty list), "[0..5],[6..11]" or "[0],[1..2]": stages that begin where the one before ended, the
/// first with layer 0.
static FailureOr<std::vector<Strategy::LayerRange>> parseSplit(dist::StagesOp line) {
  std::vector<Strategy::LayerRange> stages;
  StringRef text = line.getSplit().value_or("balanced");
  if (text == "balanced")
    return stages;
  SmallVector<StringRef> parts;
  text.split(parts, ',');
  for (StringRef part : parts) {
    std::optional<Strategy::LayerRange> range = parseRange(part.trim());
    if (!range)
      return line.emitOpError("has ") << quote(part) << (part == text ? "" : " in " + quote(text))
                                      << "; the nearest valid forms are 'balanced' and '[0..5],[6..10],[11]', first "
                                         "and last layer or the only one";
    int64_t expected = stages.empty() ? 0 : stages.back().second + 1;
    auto complain = [&] {
      InFlightDiagnostic diagnostic = line.emitOpError("has the layers ");
      diagnostic << quote(text) << ": stage " << stages.size();
      return diagnostic;
    };
    if (range->first != expected)
      return complain() << " begins with layer " << range->first << "; the nearest valid one is " << expected
                        << (stages.empty() ? ", the first" : ", where the stage before ends");
    if (range->second < range->first || range->second == INT64_MAX)
      return complain() << " ends with layer " << range->second << "; the nearest valid one is " << range->first;
    stages.push_back(*range);
  }
  return stages;
}

//===----------------------------------------------------------------------===//
// Axes
//===----------------------------------------------------------------------===//

bool Strategy::has(StringRef axis) const {
  return llvm::any_of(mesh, [&](const Axis &own) { return own.name == axis; });
}

int64_t Strategy::getSize(StringRef axis) const {
  for (const Axis &own : mesh)
    if (own.name == axis)
      return own.size;
  return 1;
}

int64_t Strategy::countRanks() const {
  int64_t ranks = 1;
  for (const Axis &axis : mesh)
    ranks *= axis.size;
  return ranks;
}

bool Strategy::isFree(StringRef axis) const {
  return has(axis) && !llvm::is_contained(batchAxes, axis) && axis != tensorAxis && axis != stageAxis;
}

LogicalResult Strategy::readMesh(dist::StrategyOp op) {
  dist::MeshOp line = op.getMesh();
  if (!line)
    return success();
  for (auto [name, size] : llvm::zip_equal(line.getAxisNames().getAsValueRange<StringAttr>(), line.getAxisSizes())) {
    if (name.contains('/'))
      return line.emitOpError("has axis ")
             << quote(name) << ", but '/' stands for a part of an axis; the nearest valid name is "
             << quote(dist::wholeAxis(name));
    mesh.push_back({name.str(), size});
  }
  return success();
}

/// Gives an axis with a usual name, such as "dp", its usual use unless the strategy gives it another.
void Strategy::chooseAxes(dist::StrategyOp op) {
  if (auto batch = op.getOnly<dist::BatchOp>())
    for (StringRef axis : batch.getAxes().getAsValueRange<StringAttr>())
      batchAxes.push_back(axis.str());
  if (auto tensor = op.getOnly<dist::TensorParallelOp>())
    tensorAxis = tensor.getAxis();
  if (auto line = op.getOnly<dist::StagesOp>())
    stageAxis = line.getAxis();
  if (tensorAxis.empty() && isFree("tp"))
    tensorAxis = "tp";
  if (stageAxis.empty() && isFree("pp"))
    stageAxis = "pp";
  if (batchAxes.empty())
    for (StringRef axis : {"dp", "fsdp"})
      if (isFree(axis))
        batchAxes.push_back(axis.str());
}

/// An axis without a use would be ranks that all compute the same.
LogicalResult Strategy::checkUses(dist::MeshOp line) const {
  static constexpr StringRef kUsual[] = {"pp", "dp", "fsdp", "tp"};
  SmallVector<StringRef> usual;
  llvm::copy_if(kUsual, std::back_inserter(usual), [&](StringRef name) { return !has(name); });
  auto usesIn = [](const Pattern &pattern, StringRef axis) {
    return llvm::any_of(pattern.sharding.getDims(), [&](dist::DimAttr dim) {
      return llvm::any_of(dim.getAxes(), [&](StringAttr own) { return own.getValue() == axis; });
    });
  };
  for (const Axis &axis : mesh) {
    if (!isFree(axis.name) || axis.name == sequenceAxis ||
        llvm::any_of(patterns, [&](const Pattern &pattern) { return usesIn(pattern, axis.name); }))
      continue;
    InFlightDiagnostic diagnostic = line.emitOpError("has axis ") << quote(axis.name) << ", which nothing uses; ";
    if (llvm::is_contained(kUsual, axis.name))
      return diagnostic << "a line of the strategy gives its usual part to another axis";
    if (!usual.empty())
      diagnostic << "axes named "
                 << llvm::join(llvm::map_range(usual, [](StringRef name) { return quote(name.str()); }), ", ")
                 << " have a use by themselves; ";
    return diagnostic << "give this axis a line of a strategy, such as batch \"" << StringRef(axis.name).take_front(50)
                      << "\"";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Lines about axes
//===----------------------------------------------------------------------===//

LogicalResult Strategy::readPatterns(dist::StrategyOp op) {
  for (auto line : op.getBody().front().getOps<dist::ShardOp>()) {
    for (dist::DimAttr dim : line.getSharding().getDims())
      if (!stageAxis.empty() && llvm::is_contained(dim.getAxes(), StringAttr::get(op.getContext(), stageAxis)))
        return line.emitOpError("takes axis \"")
               << stageAxis
               << "\", the axis of the pipeline stages: each stage has parameters of its own, so this axis cannot "
                  "divide them; use another axis of the mesh"
               << (op.getOnly<dist::StagesOp>() ? "" : ", or rename this one if the model shall have no stages");
    patterns.push_back({line.getPattern().str(), line.getSharding(), line.getLoc()});
  }
  return success();
}

LogicalResult Strategy::readZero(dist::StrategyOp op) {
  auto line = op.getOnly<dist::ZeroOp>();
  if (!line)
    return success();
  zeroLevel = line.getLevel();
  prefetch = line.getPrefetch().value_or(1);
  if (line.getAxis()) {
    zeroAxis = *line.getAxis();
    if (zeroAxis == stageAxis)
      return line.emitOpError("takes axis \"")
             << stageAxis
             << "\", the axis of the pipeline stages: each stage has parameters of its own, so there are no copies "
                "along it to divide; use an axis of the batch";
    return success(); // ZeroSharding sees the sums over it
  }
  auto several = [&](StringRef axis) { return getSize(axis) > 1; };
  if (zeroLevel > 0 && batchAxes.empty()) {
    std::string flag = "dp=N";
    for (const Axis &axis : mesh)
      flag += "," + axis.name + "=" + std::to_string(axis.size);
    return line.emitOpError("needs an axis of the batch, and the mesh has none; add one of N ranks, --mesh ")
           << flag << ", or in a file the axis \"dp\" of size N";
  }
  if (llvm::is_contained(batchAxes, "fsdp") && several("fsdp"))
    zeroAxis = "fsdp";
  else if (auto axis = llvm::find_if(batchAxes, several); axis != batchAxes.end())
    zeroAxis = *axis;
  else if (!batchAxes.empty())
    zeroAxis = batchAxes.front();
  return success();
}

LogicalResult Strategy::readSequence(dist::StrategyOp op) {
  auto line = op.getOnly<dist::SequenceParallelOp>();
  if (!line)
    return success();
  sequenceAxis = line.getAxis();
  if (sequenceAxis == stageAxis || llvm::is_contained(batchAxes, sequenceAxis))
    return line.emitOpError("takes axis \"")
           << sequenceAxis << "\", the axis of the " << (sequenceAxis == stageAxis ? "pipeline stages" : "batch")
           << "; use that of tensor parallelism"
           << (tensorAxis.empty() ? ", for instance \"tp\"" : ", \"" + tensorAxis + "\"");
  return success();
}

//===----------------------------------------------------------------------===//
// Pipelines
//===----------------------------------------------------------------------===//

LogicalResult Strategy::readSchedule(dist::StrategyOp op) {
  auto line = op.getOnly<dist::ScheduleOp>();
  if (!line)
    return success();
  if (stageAxis.empty())
    return line.emitOpError("needs stages, but the mesh has no axis for them; give it one, for instance \"pp\" of 2");
  if (getSize(stageAxis) == 1)
    return line.emitOpError("orders the ranks along \"")
           << stageAxis << "\", of which there is one; remove it, or let there be 2";
  auto choice = parseScheduleChoice(line.getSchedule().str());
  if (!choice.ok())
    return line.emitError() << std::string(choice.status().message());
  schedule = *choice;
  scheduleTable = line.getTable().value_or("");
  if (line.isTable() && !line.getTable())
    return line.emitOpError("names the file ")
           << quote(line.getSchedule())
           << ", whose text must stand behind it: table \"...\"; bowline-compile reads it there";
  return success();
}

LogicalResult Strategy::readStages(dist::StrategyOp op) {
  auto line = op.getOnly<dist::StagesOp>();
  if (!line)
    return success();
  auto split = parseSplit(line);
  if (failed(split))
    return failure();
  stages = std::move(*split);
  if (stages.empty())
    return success();
  int64_t ranks = getSize(stageAxis), chunks = schedule ? schedule->chunks : 1; // 0: a table says it
  if (ranks == 1)
    return line.emitOpError("divides layers among the ranks along \"")
           << stageAxis << "\", of which there is one; remove 'split', or let there be " << stages.size();
  if (chunks == 0 || static_cast<int64_t>(stages.size()) == chunks * ranks)
    return success();
  InFlightDiagnostic diagnostic = line.emitOpError("has the layers of ")
                                  << stages.size() << " stages, but there must be " << chunks * ranks << ": " << ranks
                                  << " ranks along \"" << stageAxis << "\"";
  if (chunks > 1)
    diagnostic << " with " << chunks << " stages each, as the schedule says";
  return diagnostic;
}

LogicalResult Strategy::readPipeline(dist::StrategyOp op) {
  if (auto line = op.getOnly<dist::MicrobatchesOp>())
    microbatches = line.getCount();
  if (failed(readSchedule(op)) || failed(readStages(op)))
    return failure();
  // Stages take all microbatches in a row with these schedules alone.
  const bool isInRows =
      schedule && (schedule->kind == ScheduleKind::GPipe || schedule->kind == ScheduleKind::BreadthFirst);
  if (auto line = op.getOnly<dist::ZeroOp>())
    gathersOnce = line.getOnce() || (zeroLevel == 3 && isInRows && !line.getEach());
  return success();
}

FailureOr<Strategy> Strategy::fromOp(dist::StrategyOp op) {
  Strategy strategy;
  if (failed(strategy.readMesh(op)))
    return failure();
  strategy.chooseAxes(op);
  if (failed(strategy.readPatterns(op)) || failed(strategy.readZero(op)) || failed(strategy.readSequence(op)) ||
      failed(strategy.checkUses(op.getMesh())) || failed(strategy.readPipeline(op)))
    return failure();
  return strategy;
}
