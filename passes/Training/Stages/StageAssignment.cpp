//===- StageAssignment.cpp - A model divided into pipeline stages
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Training/Stages/StageAssignment.h"
#include "dialects/Stage/StageOps.h"
#include "mlir/IR/Builders.h"
#include "passes/Analysis/ModuleTarget.h"
#include "passes/Analysis/TrainingNames.h"
#include "passes/Strategy/StrategySchedule.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace bowline;
using stage::StageDialect;

using Kind = LayerAnalysis::Kind;

LogicalResult StageAssignment::run() {
  auto loss = graph::FuncOp::find(module, graph::FunctionPart::Loss);
  if (!loss)
    return emitError(location)
           << "no function is the loss, 'graph.func loss @name', to divide into stages; give the mesh no axis \""
           << strategy.stageAxis << "\"";
  if (module->hasAttr(StageDialect::kCountAttr))
    return emitError(location) << "the module is divided into stages already";
  FailureOr<int64_t> layers = countLayers(module);
  if (failed(layers))
    return failure();
  LayerAnalysis analysis(loss, *layers);
  FailureOr<std::vector<LayerRange>> ranges = divide(*layers, analysis);
  if (failed(ranges))
    return failure();

  for (auto [index, range] : llvm::enumerate(*ranges))
    stageOfLayer.resize(range.second + 1, static_cast<int64_t>(index));
  OpBuilder builder(module.getContext());
  module->setAttr(StageDialect::kCountAttr, builder.getI64IntegerAttr(static_cast<int64_t>(ranges->size())));
  assignParameters(loss, analysis);
  for (Operation &op : llvm::make_early_inc_range(loss.getBody().front()))
    if (analysis.isActivation(&op))
      visit(&op, analysis);
  return success();
}

//===----------------------------------------------------------------------===//
// Division of the layers among the stages
//===----------------------------------------------------------------------===//

/// A table holds any number of stages per rank, so it must be read.
FailureOr<int64_t> StageAssignment::countStages() {
  if (strategy.schedule && strategy.schedule->kind == ScheduleKind::Table) {
    FailureOr<Schedule> schedule = makeScheduleOf(strategy, strategy.microbatches.value_or(1), location);
    if (failed(schedule))
      return failure();
    return schedule->placement.numStages();
  }
  return strategy.getSize(strategy.stageAxis) * (strategy.schedule ? strategy.schedule->chunks : 1);
}

/// Schedules of the kind of \p choice with fewer chunks per rank, the most first.
static std::vector<ScheduleChoice> withFewerChunks(const ScheduleChoice &choice) {
  std::vector<ScheduleChoice> result;
  if (choice.kind == ScheduleKind::Interleaved || choice.kind == ScheduleKind::BreadthFirst)
    for (int chunks = choice.chunks - 1; chunks > 1; --chunks)
      result.push_back({choice.kind, chunks, ""});
  result.push_back({dividesBackwards(choice) ? ScheduleKind::ZbH1 : ScheduleKind::OneForwardOneBackward, 1, ""});
  return result;
}

std::string StageAssignment::adviseFewerStages(int64_t layers, int64_t chunks) {
  const ScheduleChoice choice = strategy.schedule.value_or(ScheduleChoice());
  const int64_t ranks = strategy.getSize(strategy.stageAxis), microbatches = strategy.microbatches.value_or(1);
  const std::string axis = "\"" + strategy.stageAxis + "\"";
  auto fits = [&](const ScheduleChoice &tried, int64_t ranks) {
    return ranks * (tried.chunks > 0 ? tried.chunks : chunks) <= layers && microbatches <= INT32_MAX &&
           checkSchedule(tried, static_cast<int>(ranks), static_cast<int>(microbatches)).ok();
  };
  std::vector<std::string> ways;
  for (int64_t fewer = std::min(ranks - 1, layers / chunks); fewer > 1 && ways.empty(); --fewer)
    if (fits(choice, fewer))
      ways.push_back("the nearest valid number of ranks along " + axis + " is " + std::to_string(fewer));
  if (chunks > 1)
    for (const ScheduleChoice &other : withFewerChunks(choice))
      if (fits(other, ranks)) {
        ways.push_back("use schedule \"" + toString(other) + "\"");
        break;
      }
  if (ways.empty())
    ways.push_back("give the mesh no axis " + axis + (strategy.schedule ? ", and leave out the schedule" : ""));
  if (!strategy.stages.empty())
    ways.back() += ", with the layers of as many stages";
  return "; " + llvm::join(ways, ", or ");
}

FailureOr<std::vector<LayerRange>> StageAssignment::divide(int64_t layers, const LayerAnalysis &analysis) {
  FailureOr<int64_t> stages = countStages();
  if (failed(stages))
    return failure();
  int64_t ranks = strategy.getSize(strategy.stageAxis);
  auto describeModel = [&](InFlightDiagnostic &&diagnostic) {
    diagnostic << ", but the model has " << layers << (layers == 1 ? " layer" : " layers");
    return std::move(diagnostic);
  };
  if (*stages > layers)
    return describeModel(emitError(location)
                         << *stages << " stages are asked for, " << *stages / ranks << " on each of " << ranks
                         << " ranks along \"" << strategy.stageAxis << "\"")
           << adviseFewerStages(layers, *stages / ranks);
  if (strategy.stages.empty()) {
    FailureOr<targets::CostModel> model = costModelOf(module);
    if (failed(model))
      return failure();
    return partitionLayers(analysis.costs(*model), *stages);
  }
  if (static_cast<int64_t>(strategy.stages.size()) != *stages)
    return emitError(location) << "the strategy gives the layers of " << strategy.stages.size()
                               << " stages, but the schedule has " << *stages;
  if (strategy.stages.back().second != layers - 1)
    return describeModel(emitError(location) << "the last stage ends with layer " << strategy.stages.back().second)
           << "; the nearest valid last layer is " << layers - 1
           << (strategy.stages.back().first > layers - 1 ? ", with earlier stages of fewer layers" : "");
  return strategy.stages;
}

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

void StageAssignment::assignParameters(graph::FuncOp function, const LayerAnalysis &analysis) {
  for (Operation &op : function.getBody().front())
    if (analysis.isActivation(&op))
      for (Value operand : op.getOperands())
        if (analysis.kindOf(operand) == Kind::Weight)
          users[analysis.parameterOf(operand)].insert(stageOfLayer[analysis.layerOf(&op)]);
  Builder builder(module.getContext());
  for (auto &[param, stages] : users)
    param->setAttr(StageDialect::kIndexAttr, builder.getDenseI64ArrayAttr({*stages.begin()}));
}

graph::ParamOp StageAssignment::mirrorOf(graph::ParamOp owner, int64_t stage) {
  graph::ParamOp &mirror = mirrors[{owner, stage}];
  if (mirror)
    return mirror;
  Builder builder(module.getContext());
  mirror = owner.clone();
  mirror.setSymName((owner.getName() + ".mirror" + Twine(stage)).str());
  mirror.setMirrorOfAttr(FlatSymbolRefAttr::get(owner));
  mirror->setAttr(StageDialect::kIndexAttr, builder.getDenseI64ArrayAttr({stage}));
  symbols.insert(mirror, std::next(owner->getIterator()));
  return mirror;
}

Value StageAssignment::mirrored(Value value, int64_t stage, const LayerAnalysis &analysis) {
  if (analysis.kindOf(value) != Kind::Weight)
    return value;
  if (Value copy = copies.lookup({value, stage}))
    return copy;
  Operation *op = value.getDefiningOp();
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  Operation *clone = op->clone();
  if (auto read = dyn_cast<graph::ReadOp>(clone))
    read.setVariable(mirrorOf(analysis.parameterOf(value), stage).getName());
  for (OpOperand &operand : clone->getOpOperands())
    operand.set(mirrored(operand.get(), stage, analysis));
  builder.insert(clone);
  return copies[{value, stage}] = clone->getResult(cast<OpResult>(value).getResultNumber());
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

Value StageAssignment::transferred(Value value, int64_t stage) {
  if (stageOf.lookup(value) == stage)
    return value;
  if (Value copy = copies.lookup({value, stage}))
    return copy;
  Value before = transferred(value, stage - 1);
  OpBuilder builder(module.getContext());
  builder.setInsertionPointAfterValue(before);
  Location place = NameLoc::get(builder.getStringAttr("transfer"), value.getLoc());
  Value copy = stage::createTransfers(builder, place, before, stage - 1, stage);
  copies[{value, stage}] = copy;
  return copy;
}

void StageAssignment::visit(Operation *op, const LayerAnalysis &analysis) {
  int64_t stage = stageOfLayer[analysis.layerOf(op)];
  for (Value result : op->getResults())
    stageOf[result] = stage;
  for (OpOperand &operand : op->getOpOperands()) {
    Value value = operand.get();
    if (analysis.kindOf(value) == Kind::Activation)
      operand.set(transferred(value, stage));
    else if (analysis.kindOf(value) == Kind::Weight && *users[analysis.parameterOf(value)].begin() != stage)
      operand.set(mirrored(value, stage, analysis));
  }
}
