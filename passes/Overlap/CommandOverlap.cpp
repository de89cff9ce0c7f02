//===- CommandOverlap.cpp - Communication runs beside computation
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Overlap/CommandOverlap.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OwningOpRef.h"
#include "passes/Analysis/StreamClocks.h"
#include "passes/Overlap/RunMerging.h"
#include "passes/Overlap/SegmentSchedule.h"

using namespace mlir;
using namespace bowline;

/// A gain below this share of a step is less than the model knows.
static constexpr double kLeastGain = 0.002;

/// As many streams as a plan may have, the one that computes left out.
static constexpr size_t kMostStreams = 63;

/// Streams by communicator, in the order of first use.
static llvm::StringMap<int64_t> streamsOf(plan::ProgramOp program, SymbolTable &symbols,
                                          SmallVector<StringRef> &names) {
  llvm::StringMap<int64_t> streams;
  program.walk([&](plan::CollectiveOp collective) {
    if (!isBetweenStages(collective, symbols) && streams.try_emplace(collective.getCommunicator(), names.size()).second)
      names.push_back(collective.getCommunicator());
  });
  return streams;
}

std::optional<CommandOverlap::Result> CommandOverlap::run(plan::ProgramOp program) {
  SmallVector<StringRef> names = {cast<StringAttr>(program.getStreams()[0]).getValue()};
  llvm::StringMap<int64_t> streams = streamsOf(program, symbols, names);
  if (program.getStreams().size() > 1 || streams.empty() || streams.size() > kMostStreams)
    return std::nullopt;
  OwningOpRef<plan::ProgramOp> before = program.clone();
  int64_t merged = options.mergesRuns ? RunMerging(program, symbols).run() : 0;
  auto undo = [&]() -> std::optional<Result> {
    if (merged > 0) {
      program.getBody().takeBody(before->getBody());
      program.setTimeline(before->getTimeline());
    }
    return std::nullopt;
  };
  std::vector<SegmentSchedule> schedules;
  SmallVector<plan::SegmentOp> segments = segmentsOf(program);
  for (plan::SegmentOp segment : segments) {
    schedules.emplace_back(segment, symbols, cost, streams, options.mostPrefetch);
    if (!schedules.back().isFree())
      return undo();
    schedules.back().run();
  }
  Result result;
  ArrayRef<int64_t> timeline = program.getTimeline();
  for (size_t i = 0; i < timeline.size(); i += 2) {
    result.serialSeconds += schedules[timeline[i]].serialSeconds();
    result.seconds += schedules[timeline[i]].seconds();
  }
  if (result.seconds > (1 - kLeastGain) * result.serialSeconds)
    return undo();
  int64_t events = 0;
  for (SegmentSchedule &schedule : schedules)
    events += schedule.apply(events);
  program.setStreamsAttr(OpBuilder(program).getStrArrayAttr(names));
  return result;
}
