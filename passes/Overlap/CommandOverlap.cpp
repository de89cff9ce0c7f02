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
#include "passes/Overlap/EarlyReductions.h"
#include "passes/Overlap/RunMerging.h"
#include "passes/Overlap/SegmentSchedule.h"

using namespace mlir;
using namespace bowline;

/// A gain below this share of a step is less than the model knows.
static constexpr double kLeastGain = 0.002;

/// The most streams that a plan may have.
static constexpr size_t kMostStreams = 64;

/// New streams by communicator, in the order of first use. A communicator that is used in a segment that is not free
/// stays on its stream: a communicator has one stream. So do transfers between stages.
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

/// Copies that were taken back leave buffers behind, and so do reductions that became in place.
static void eraseUnused(SymbolTable &symbols) {
  for (auto buffer : llvm::make_early_inc_range(cast<ModuleOp>(symbols.getOp()).getOps<plan::BufferOp>()))
    if ((buffer.getKind() == plan::BufferKind::Temporary || buffer.getKind() == plan::BufferKind::Scratch) &&
        buffer.use_empty())
      buffer.erase();
}

std::optional<CommandOverlap::Result> CommandOverlap::run(plan::ProgramOp program) {
  auto names = llvm::map_to_vector(program.getStreams().getAsRange<StringAttr>(),
                                   [](StringAttr name) { return name.getValue(); });
  llvm::StringMap<int64_t> streams = streamsOf(program, symbols, names);
  if (streams.empty() || names.size() > kMostStreams)
    return std::nullopt;
  OwningOpRef<plan::ProgramOp> before = program.clone();
  Result result;
  int64_t merged = options.mergesRuns ? RunMerging(program, symbols).run() : 0;
  if (options.mergesRuns && program.getStreams().size() > 1)
    result.earlyReductions = EarlyReductions(program, symbols).run();

  std::vector<std::optional<SegmentSchedule>> schedules;
  for (plan::SegmentOp segment : segmentsOf(program)) {
    schedules.emplace_back();
    if (isFree(segment))
      schedules.back().emplace(segment, symbols, cost, streams, options.mostPrefetch).run();
  }
  ArrayRef<int64_t> timeline = program.getTimeline();
  for (size_t i = 0; i < timeline.size(); i += 2)
    if (auto &schedule = schedules[timeline[i]]) {
      result.serialSeconds += schedule->serialSeconds();
      result.seconds += schedule->seconds();
    }
  if (result.seconds > (1 - kLeastGain) * result.serialSeconds) {
    if (merged > 0 || result.earlyReductions > 0) {
      program.getBody().takeBody(before->getBody());
      program.setTimeline(before->getTimeline());
      before = nullptr;
      eraseUnused(symbols);
    }
    return std::nullopt;
  }
  before = nullptr;
  eraseUnused(symbols);
  int64_t events = eventCount(program);
  for (auto &schedule : schedules)
    if (schedule)
      events += schedule->apply(events);
  program.setStreamsAttr(OpBuilder(program).getStrArrayAttr(names));
  return result;
}
