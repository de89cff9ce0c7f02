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

/// As many as a plan may have.
static constexpr size_t kMostStreams = 64;

/// Whether commands of a segment can be moved: all are on the first stream, and none is an event.
static bool isFree(plan::SegmentOp segment) {
  return llvm::all_of(segment.getBody().front(), [](Operation &op) {
    return !isa<plan::SignalOp, plan::WaitOp>(op) && cast<plan::Command>(op).getStreamIndex() == 0;
  });
}

/// New streams by communicator, in the order of first use. One that is used in a segment that is not free stays where
/// it is: a communicator has one stream. So does what goes between stages.
static llvm::StringMap<int64_t> streamsOf(plan::ProgramOp program, SymbolTable &symbols,
                                          SmallVectorImpl<StringRef> &names) {
  llvm::DenseSet<StringRef> fixed;
  for (plan::SegmentOp segment : segmentsOf(program))
    if (!isFree(segment))
      segment.walk([&](plan::CollectiveOp collective) { fixed.insert(collective.getCommunicator()); });
  llvm::StringMap<int64_t> streams;
  program.walk([&](plan::CollectiveOp collective) {
    StringRef name = collective.getCommunicator();
    if (!isBetweenStages(collective, symbols) && !fixed.contains(name) &&
        streams.try_emplace(name, names.size()).second)
      names.push_back(name);
  });
  return streams;
}

std::optional<CommandOverlap::Result> CommandOverlap::run(plan::ProgramOp program) {
  auto names = llvm::map_to_vector(program.getStreams().getAsRange<StringAttr>(),
                                   [](StringAttr name) { return name.getValue(); });
  llvm::StringMap<int64_t> streams = streamsOf(program, symbols, names);
  if (streams.empty() || names.size() > kMostStreams)
    return std::nullopt;
  OwningOpRef<plan::ProgramOp> before = program.clone();
  int64_t merged = options.mergesRuns ? RunMerging(program, symbols).run() : 0;

  std::vector<std::optional<SegmentSchedule>> schedules;
  for (plan::SegmentOp segment : segmentsOf(program)) {
    schedules.emplace_back();
    if (isFree(segment))
      schedules.back().emplace(segment, symbols, cost, streams, options.mostPrefetch).run();
  }
  Result result;
  ArrayRef<int64_t> timeline = program.getTimeline();
  for (size_t i = 0; i < timeline.size(); i += 2)
    if (auto &schedule = schedules[timeline[i]]) {
      result.serialSeconds += schedule->serialSeconds();
      result.seconds += schedule->seconds();
    }
  if (result.seconds > (1 - kLeastGain) * result.serialSeconds) {
    if (merged > 0) {
      program.getBody().takeBody(before->getBody());
      program.setTimeline(before->getTimeline());
    }
    return std::nullopt;
  }
  int64_t events = eventCount(program);
  for (auto &schedule : schedules)
    if (schedule)
      events += schedule->apply(events);
  program.setStreamsAttr(OpBuilder(program).getStrArrayAttr(names));
  return result;
}
