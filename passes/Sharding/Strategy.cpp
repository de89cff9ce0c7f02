//===- Strategy.cpp - How a program is divided among ranks
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Sharding/Strategy.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace bowline;

static constexpr int64_t kMaxRanks = dist::MeshOp::kMaxRanks;

/// What of a user's text goes into a message.
static std::string quote(StringRef text) { return "'" + text.take_front(200).str() + "'"; }

//===----------------------------------------------------------------------===//
// Texts
//===----------------------------------------------------------------------===//

FailureOr<std::vector<Strategy::Axis>> bowline::parseMesh(StringRef text, Strategy::EmitError emitError) {
  std::vector<Strategy::Axis> axes;
  int64_t ranks = 1;
  SmallVector<StringRef> parts;
  text.split(parts, ',');
  for (StringRef part : parts) {
    auto [name, number] = part.split('=');
    name = name.trim();
    int64_t size = 0;
    if (name.empty() || number.trim().getAsInteger(10, size))
      return emitError() << "mesh " << quote(text) << " has " << quote(part)
                         << "; each axis is NAME=SIZE, for instance '" << (name.empty() ? "dp" : name.take_front(50))
                         << "=2'";
    if (name.contains('/'))
      return emitError() << "mesh " << quote(text) << " has axis " << quote(name)
                         << ", but '/' stands for a part of an axis; the nearest valid name is "
                         << quote(dist::wholeAxis(name));
    if (llvm::any_of(axes, [&](const Strategy::Axis &axis) { return axis.name == name; }))
      return emitError() << "mesh " << quote(text) << " has axis " << quote(name) << " twice; remove one";
    if (size < 1 || size > kMaxRanks / ranks)
      return emitError() << "mesh " << quote(text) << " has axis " << quote(name) << " of " << size
                         << " ranks; the nearest valid size is " << (size < 1 ? int64_t{1} : kMaxRanks / ranks)
                         << (size < 1 ? "" : ", for " + std::to_string(kMaxRanks) + " ranks in all");
    ranks *= size;
    axes.push_back({name.str(), size});
  }
  return axes;
}

/// "[0..5]"
static std::optional<Strategy::LayerRange> parseRange(StringRef text) {
  Strategy::LayerRange range;
  if (!text.consume_front("[") || !text.consume_back("]"))
    return std::nullopt;
  auto [first, last] = text.split("..");
  if (first.trim().getAsInteger(10, range.first) || last.trim().getAsInteger(10, range.second))
    return std::nullopt;
  return range;
}

FailureOr<std::vector<Strategy::LayerRange>> bowline::parseStages(StringRef text, Strategy::EmitError emitError) {
  std::vector<Strategy::LayerRange> stages;
  if (text == "balanced")
    return stages;
  SmallVector<StringRef> parts;
  text.split(parts, ',');
  for (StringRef part : parts) {
    std::optional<Strategy::LayerRange> range = parseRange(part.trim());
    if (!range)
      return emitError() << "stages " << quote(text) << " have " << quote(part)
                         << "; the nearest valid forms are 'balanced' and '[0..5],[6..11]', first and last layer";
    int64_t expected = stages.empty() ? 0 : stages.back().second + 1;
    if (range->first != expected)
      return emitError() << "stages " << quote(text) << ": stage " << stages.size() << " begins with layer "
                         << range->first << "; the nearest valid one is " << expected
                         << (stages.empty() ? ", the first" : ", where the stage before ends");
    if (range->second < range->first || range->second == INT64_MAX)
      return emitError() << "stages " << quote(text) << ": stage " << stages.size() << " ends with layer "
                         << range->second << "; the nearest valid one is " << range->first;
    stages.push_back(*range);
  }
  return stages;
}

static std::string printStages(ArrayRef<Strategy::LayerRange> stages) {
  if (stages.empty())
    return "balanced";
  std::vector<std::string> parts;
  for (auto [first, last] : stages)
    parts.push_back("[" + std::to_string(first) + ".." + std::to_string(last) + "]");
  return llvm::join(parts, ",");
}

/// Sets schedule and stages, which must agree in the number of stages.
static LogicalResult setPipeline(Strategy &strategy, StringRef schedule, StringRef stages,
                                 Strategy::EmitError scheduleError, Strategy::EmitError stagesError) {
  if (!schedule.empty()) {
    auto choice = parseScheduleChoice(schedule.str());
    if (!choice.ok())
      return scheduleError() << std::string(choice.status().message());
    strategy.schedule = *choice;
  }
  auto split = parseStages(stages.empty() ? "balanced" : stages, stagesError);
  if (failed(split))
    return failure();
  strategy.stages = std::move(*split);
  if (!strategy.stages.empty() && strategy.stageAxis.empty())
    return stagesError() << "stages " << quote(stages)
                         << " need an axis of the mesh, for instance 'pp=" << strategy.stages.size() << "'";
  int64_t chunks = strategy.schedule ? strategy.schedule->chunks : 1; // 0: a table says it
  int64_t expected = chunks * strategy.getSize(strategy.stageAxis);
  if (strategy.stages.empty() || expected == 0 || static_cast<int64_t>(strategy.stages.size()) == expected)
    return success();
  InFlightDiagnostic diagnostic = stagesError();
  diagnostic << "stages " << quote(stages) << " are " << strategy.stages.size() << ", but there must be " << expected
             << ": " << strategy.getSize(strategy.stageAxis) << " ranks along \"" << strategy.stageAxis << "\"";
  if (chunks > 1)
    diagnostic << " with " << chunks << " stages each, as the schedule says";
  return diagnostic;
}

//===----------------------------------------------------------------------===//
// Strategy
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

bool Strategy::isFree(StringRef axis) const {
  return has(axis) && !llvm::is_contained(batchAxes, axis) && axis != tensorAxis && axis != stageAxis;
}

/// An axis with a usual name that has no other use gets the usual one.
void Strategy::setDefaultAxes() {
  auto choose = [&](std::string &role, StringRef axis) {
    if (role.empty() && isFree(axis))
      role = axis.str();
  };
  choose(tensorAxis, "tp");
  choose(stageAxis, "pp");
  if (batchAxes.empty())
    for (StringRef axis : {"dp", "fsdp"})
      if (isFree(axis))
        batchAxes.push_back(axis.str());
  if (zeroLevel > 0 && zeroAxis.empty() && !batchAxes.empty())
    zeroAxis = llvm::is_contained(batchAxes, "fsdp") ? "fsdp" : batchAxes.front();
}

dist::StrategyOp Strategy::find(ModuleOp module) {
  auto strategies = module.getOps<dist::StrategyOp>();
  return strategies.empty() ? dist::StrategyOp() : *strategies.begin();
}

FailureOr<Strategy> Strategy::fromOp(dist::StrategyOp op) {
  Strategy strategy;
  dist::MeshOp mesh = op.getMesh();
  for (auto [name, size] : llvm::zip_equal(mesh.getAxisNames().getAsValueRange<StringAttr>(), mesh.getAxisSizes()))
    strategy.mesh.push_back({name.str(), size});
  for (const Axis &axis : strategy.mesh)
    if (StringRef(axis.name).contains('/'))
      return mesh.emitOpError("has axis ")
             << quote(axis.name) << ", but '/' stands for a part of an axis; the nearest valid name is "
             << quote(dist::wholeAxis(axis.name));
  if (auto batch = op.getOnly<dist::BatchOp>())
    for (StringRef axis : batch.getAxes().getAsValueRange<StringAttr>())
      strategy.batchAxes.push_back(axis.str());
  if (auto tensor = op.getOnly<dist::TensorParallelOp>())
    strategy.tensorAxis = tensor.getAxis();
  auto stages = op.getOnly<dist::StagesOp>();
  if (stages)
    strategy.stageAxis = stages.getAxis();
  if (auto sequence = op.getOnly<dist::SequenceParallelOp>())
    strategy.sequenceAxis = sequence.getAxis();
  auto zero = op.getOnly<dist::ZeroOp>();
  if (zero) {
    strategy.zeroLevel = zero.getLevel();
    strategy.zeroAxis = zero.getAxis().value_or("");
  }
  if (auto recompute = op.getOnly<dist::RecomputeOp>())
    strategy.recompute = recompute.getActivations();
  for (dist::ShardOp shard : op.getBody().front().getOps<dist::ShardOp>())
    strategy.patterns.push_back({shard.getPattern().str(), shard.getSharding(), shard.getLoc()});
  strategy.setDefaultAxes();
  if (strategy.zeroLevel > 0 && strategy.zeroAxis.empty())
    return zero.emitOpError("needs an axis: the mesh has none for the batch"), failure();

  auto schedule = op.getOnly<dist::ScheduleOp>();
  if (schedule)
    strategy.microbatches = schedule.getMicrobatches();
  auto errorAt = [&](Operation *line) { return (line ? line : op.getOperation())->emitOpError(); };
  if (failed(setPipeline(
          strategy, schedule ? schedule.getSchedule() : "", stages ? stages.getSplit() : "",
          [&] { return errorAt(schedule); }, [&] { return errorAt(stages); })))
    return failure();
  return strategy;
}

/// The nearest of the axes that a strategy has, as "; the nearest is 'dp'".
static std::string suggestAxis(const Strategy &strategy, StringRef axis) {
  SmallVector<StringRef> names;
  for (const Strategy::Axis &own : strategy.mesh)
    names.push_back(own.name);
  return "; the nearest is " + quote(dist::findNearest(axis, names));
}

/// An axis without a use would be ranks that all compute the same.
static LogicalResult checkUses(const Strategy &strategy, StringRef mesh, Strategy::EmitError emitError) {
  SmallVector<StringRef> usual;
  for (StringRef name : {"pp", "dp", "fsdp", "tp"})
    if (llvm::none_of(strategy.mesh, [&](const Strategy::Axis &axis) { return axis.name == name; }))
      usual.push_back(name);
  for (const Strategy::Axis &axis : strategy.mesh) {
    if (llvm::is_contained(strategy.batchAxes, axis.name) ||
        llvm::is_contained({strategy.tensorAxis, strategy.stageAxis, strategy.zeroAxis}, axis.name))
      continue;
    InFlightDiagnostic diagnostic = emitError();
    diagnostic << "mesh " << quote(mesh) << " has axis " << quote(axis.name) << ", which nothing uses";
    if (!usual.empty())
      diagnostic << "; the nearest that has a use is " << quote(dist::findNearest(axis.name, usual));
    return diagnostic;
  }
  return success();
}

FailureOr<Strategy> Strategy::fromFlags(const StrategyFlags &flags, EmitError emitError) {
  Strategy strategy;
  if (!flags.mesh.empty()) {
    auto mesh = parseMesh(flags.mesh, emitError);
    if (failed(mesh))
      return failure();
    strategy.mesh = std::move(*mesh);
  }
  if (strategy.mesh.empty())
    strategy.mesh.push_back({"dp", 1});
  strategy.zeroLevel = flags.zero.value_or(0);
  if (strategy.zeroLevel < 0 || strategy.zeroLevel > 3)
    return emitError() << "there is no ZeRO level " << strategy.zeroLevel << "; the nearest of 0 to 3 is "
                       << (strategy.zeroLevel < 0 ? 0 : 3);
  strategy.zeroAxis = flags.zeroAxis;
  if (!flags.zeroAxis.empty() && !strategy.has(flags.zeroAxis))
    return emitError() << "the mesh has no axis " << quote(flags.zeroAxis) << " for ZeRO"
                       << suggestAxis(strategy, flags.zeroAxis);
  strategy.setDefaultAxes();
  if (failed(checkUses(strategy, flags.mesh, emitError)))
    return failure();
  if (strategy.zeroLevel > 0 && strategy.zeroAxis.empty())
    return emitError() << "ZeRO needs an axis: the mesh " << quote(flags.mesh)
                       << " has no 'dp'; add one, or name another with --zero-axis";
  if (flags.sequenceParallel && strategy.tensorAxis.empty())
    return emitError() << "sequence parallelism goes along the axis of tensor parallelism, and the mesh "
                       << quote(flags.mesh) << " has no 'tp'; add one, for instance 'tp=2'";
  if (flags.sequenceParallel)
    strategy.sequenceAxis = strategy.tensorAxis;
  strategy.microbatches = flags.microbatches;
  if (flags.microbatches.value_or(1) < 1)
    return emitError() << "there cannot be " << *flags.microbatches << " microbatches; the nearest valid number is 1";
  static constexpr StringRef kRecompute[] = {"none", "selective", "full", "auto"};
  if (!flags.recompute.empty())
    strategy.recompute = flags.recompute;
  if (!llvm::is_contained(kRecompute, strategy.recompute))
    return emitError() << "there is no recomputation " << quote(flags.recompute) << "; the nearest is "
                       << quote(dist::findNearest(flags.recompute, kRecompute));
  if (!flags.schedule.empty() && strategy.stageAxis.empty())
    return emitError() << "schedule " << quote(flags.schedule)
                       << " needs stages, but the mesh has no axis for them; give it one, for instance 'pp=2'";
  if (failed(setPipeline(strategy, flags.schedule, flags.stages, emitError, emitError)))
    return failure();
  return strategy;
}

dist::StrategyOp Strategy::write(OpBuilder &builder, Location location, StringRef name) const {
  OpBuilder::InsertionGuard guard(builder);
  auto op = dist::StrategyOp::create(builder, location, name);
  builder.setInsertionPointToStart(&op.getBody().emplaceBlock());
  SmallVector<StringRef> names;
  SmallVector<int64_t> sizes;
  for (const Axis &axis : mesh) {
    names.push_back(axis.name);
    sizes.push_back(axis.size);
  }
  dist::MeshOp::create(builder, location, "mesh", builder.getStrArrayAttr(names), sizes);
  if (!batchAxes.empty())
    dist::BatchOp::create(builder, location, builder.getStrArrayAttr(llvm::to_vector_of<StringRef>(batchAxes)));
  if (!tensorAxis.empty())
    dist::TensorParallelOp::create(builder, location, tensorAxis);
  for (const Pattern &pattern : patterns)
    dist::ShardOp::create(builder, pattern.location, pattern.glob, pattern.sharding);
  if (!stageAxis.empty())
    dist::StagesOp::create(builder, location, stageAxis, printStages(stages));
  if (schedule || microbatches)
    dist::ScheduleOp::create(builder, location, builder.getStringAttr(toString(schedule.value_or(ScheduleChoice()))),
                             microbatches ? builder.getI64IntegerAttr(*microbatches) : IntegerAttr());
  if (zeroLevel > 0 || !zeroAxis.empty())
    dist::ZeroOp::create(builder, location, builder.getI64IntegerAttr(zeroLevel),
                         zeroAxis.empty() ? StringAttr() : builder.getStringAttr(zeroAxis));
  if (!sequenceAxis.empty())
    dist::SequenceParallelOp::create(builder, location, sequenceAxis);
  if (recompute != "none")
    dist::RecomputeOp::create(builder, location, recompute);
  return op;
}
