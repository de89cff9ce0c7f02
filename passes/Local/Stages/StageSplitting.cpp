//===- StageSplitting.cpp - One program per rank of a pipeline
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Local/Stages/StageSplitting.h"
#include "passes/Analysis/TrainingNames.h"
#include "passes/Stages/Schedules/MakeTimeline.h"
#include "passes/Strategy/StrategySchedule.h"

using namespace mlir;
using namespace bowline;

/// Operations that ranks divide among each other; the rest of a module is for all.
static bool isDivided(Operation *op) { return isa<graph::FuncOp, graph::EntryOp, graph::Variable>(op); }

LogicalResult StageSplitting::run() {
  FailureOr<int64_t> microbatches = countMicrobatches();
  if (failed(microbatches))
    return failure();
  FailureOr<Schedule> schedule = readSchedule(*microbatches);
  if (failed(schedule))
    return failure();
  if (std::optional<int64_t> count = stage::countOf(module); schedule->placement.numStages() != *count)
    return emitError(scheduleLocation()) << "the schedule has " << schedule->placement.numStages()
                                         << " stages, but the program was divided into " << *count
                                         << "; give the schedule with which it was divided";
  absl::StatusOr<PipelineTimeline> timeline = makePipelineTimeline(*schedule);
  if (!timeline.ok())
    return emitError(scheduleLocation()) << std::string(timeline.status().message());

  PipelineRanks ranks{schedule->placement, *timeline};
  OpBuilder builder(module.getContext());
  builder.setInsertionPointToEnd(module.getBody());
  module->setAttr(stage::StageDialect::kAxisAttr, builder.getStringAttr(strategy.stageAxis));
  SmallVector<Operation *> divided;
  for (Operation &op : *module.getBody())
    if (isDivided(&op))
      divided.push_back(&op);
  for (int64_t rank = 0; rank < schedule->placement.numRanks(); ++rank)
    split(builder, ranks, rank);
  for (Operation *op : llvm::reverse(divided))
    op->erase();
  return success();
}

//===----------------------------------------------------------------------===//
// The schedule
//===----------------------------------------------------------------------===//

FailureOr<int64_t> StageSplitting::countMicrobatches() {
  int64_t microbatches = 0;
  auto microbatch = graph::FuncOp::find(module, graph::FunctionPart::Microbatch);
  if (!microbatch)
    return microbatches;
  for (auto entry : module.getOps<graph::EntryOp>())
    for (auto [name, repeat] : llvm::zip_equal(entry.getFunctions().getAsRange<FlatSymbolRefAttr>(), entry.getRepeat()))
      if (name.getValue() == microbatch.getName()) {
        if (microbatches != 0 && microbatches != repeat)
          return entry.emitOpError("runs ") << name << " " << repeat << " times, but another entry " << microbatches
                                            << " times; one schedule is for one number of microbatches";
        microbatches = repeat;
      }
  return microbatches;
}

Location StageSplitting::scheduleLocation() {
  auto line = lines.getOnly<dist::ScheduleOp>();
  return line ? line.getLoc() : lines.getMesh().getLoc();
}

/// A program that only evaluates has a schedule too: it says which rank has which stage.
FailureOr<Schedule> StageSplitting::readSchedule(int64_t microbatches) {
  if (microbatches == 0)
    microbatches = strategy.microbatches.value_or(2 * strategy.getSize(strategy.stageAxis));
  auto count = lines.getOnly<dist::MicrobatchesOp>();
  if (count && static_cast<int64_t>(count.getCount()) != microbatches)
    return count.emitOpError("has the number ")
           << count.getCount() << ", but a step of the program has " << microbatches << "; use that, or compile again";
  return makeScheduleOf(strategy, microbatches, scheduleLocation());
}

//===----------------------------------------------------------------------===//
// Modules
//===----------------------------------------------------------------------===//

ModuleOp StageSplitting::split(OpBuilder &builder, const PipelineRanks &ranks, int64_t rank) {
  std::string name = "stage" + std::to_string(rank);
  ModuleOp nested = ModuleOp::create(builder, module.getLoc(), name);

  SymbolTable rankSymbols(nested);
  OpBuilder body = OpBuilder::atBlockEnd(nested.getBody());
  auto isHere = [&](int64_t stage) { return ranks.rankOf(stage) == rank; };
  for (Operation &op : *module.getBody()) {
    if (isa<graph::Variable>(op) && llvm::any_of(stage::indexOf(&op), isHere))
      removeStageLabels(body.clone(op));
  }
  rankSymbols = SymbolTable(nested);
  std::unique_ptr<MicrobatchFragments> fragments;
  for (auto function : module.getOps<graph::FuncOp>())
    if (function.getPart() == graph::FunctionPart::Microbatch) {
      fragments = std::make_unique<MicrobatchFragments>(function, ranks, rank, rankSymbols);
      fragments->run();
    } else {
      RankFunction(function, ranks, builder.getStringAttr(strategy.stageAxis), rank, rankSymbols).run();
    }
  for (auto entry : module.getOps<graph::EntryOp>())
    addEntry(entry, fragments.get(), rankSymbols);
  return nested;
}

void StageSplitting::addEntry(graph::EntryOp entry, const MicrobatchFragments *fragments, SymbolTable &rankSymbols) {
  Builder builder(module.getContext());
  auto microbatch = graph::FuncOp::find(module, graph::FunctionPart::Microbatch);
  auto isMicrobatch = [&](FlatSymbolRefAttr name) { return microbatch && name.getValue() == microbatch.getName(); };
  auto names = llvm::to_vector(entry.getFunctions().getAsRange<FlatSymbolRefAttr>());
  if (llvm::none_of(names, isMicrobatch)) {
    rankSymbols.insert(entry->clone());
    return;
  }
  SmallVector<Attribute> functions;
  SmallVector<int64_t> timeline;
  int64_t microbatches = 1;
  for (auto [name, repeat] : llvm::zip_equal(names, entry.getRepeat())) {
    int64_t first = static_cast<int64_t>(functions.size());
    if (!isMicrobatch(name)) {
      functions.push_back(name);
      for (int64_t repetition = 0; repetition < repeat; ++repetition)
        timeline.append({first, 0});
      continue;
    }
    microbatches = repeat;
    llvm::StringMap<int64_t> places;
    for (const std::string &function : fragments->functions()) {
      places[function] = static_cast<int64_t>(functions.size());
      functions.push_back(FlatSymbolRefAttr::get(builder.getContext(), function));
    }
    for (const MicrobatchFragments::Step &step : fragments->steps())
      timeline.append({places.lookup(step.function), step.microbatch});
  }
  OpBuilder inserted(module.getContext());
  rankSymbols.insert(graph::EntryOp::create(
      inserted, entry.getLoc(), entry.getKindAttr(), entry.getSymNameAttr(), entry.getBucketAttr(),
      inserted.getArrayAttr(functions), inserted.getDenseI64ArrayAttr(SmallVector<int64_t>(functions.size(), 1)),
      inserted.getDenseI64ArrayAttr(timeline), inserted.getI64IntegerAttr(microbatches)));
}
