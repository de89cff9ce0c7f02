//===- MakeTimeline.cpp - From a schedule to the steps that each rank issues
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Stages/Schedules/MakeTimeline.h"
#include "passes/Stages/Schedules/PipelineChannels.h"
#include "passes/Stages/Schedules/ScheduleProgress.h"
#include "passes/Stages/Schedules/Simulator.h"
#include "passes/Stages/Schedules/TimelineSlots.h"
#include "passes/Stages/Schedules/Validator.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <tuple>
#include <utility>

using namespace bowline;

static StepKind stepOf(ActionKind kind) {
  switch (kind) {
  case ActionKind::Forward:
    return StepKind::Forward;
  case ActionKind::Backward:
    return StepKind::Backward;
  case ActionKind::BackwardInput:
    return StepKind::BackwardInput;
  case ActionKind::BackwardWeight:
    break;
  }
  return StepKind::BackwardWeight;
}

namespace {

/// A transfer is one operation of two ranks.
struct Transfer {
  bool gradient = false;
  int fromStage = 0, toStage = 0, microbatch = 0, channel = kNoChannel;
  /// The first actions of the two ranks' schedules before which it is issued: the one after that which makes the sent
  /// value, and one that is so many before the one that needs it.
  size_t sendBefore = 0, receiveBefore = 0;
  int64_t time = 0;
};

class TimelineBuilder {
public:
  TimelineBuilder(const Schedule &schedule, const StageChannels &channels, size_t distance)
      : schedule(schedule), placement(schedule.placement), channels(channels), distance(distance) {}

  absl::StatusOr<std::vector<std::vector<TimelineStep>>> make();

private:
  void findTransfers();
  void addTransfer(bool gradient, int from, int to, int microbatch, int channel);
  size_t &positionOf(bool backward, int stage, int microbatch) {
    return positions[(size_t{2} * stage + backward) * schedule.numMicrobatches + microbatch];
  }
  absl::Status orderTransfers();
  std::vector<TimelineStep> stepsOf(int rank) const;

  const Schedule &schedule;
  const Placement &placement;
  const StageChannels &channels;
  size_t distance;
  std::vector<size_t> positions; // positions of F, and of B or I, per stage and microbatch
  std::vector<Transfer> transfers;
};

} // namespace

void TimelineBuilder::findTransfers() {
  constexpr auto kNowhere = static_cast<size_t>(-1);
  positions.assign(size_t{2} * placement.numStages() * schedule.numMicrobatches, kNowhere);
  for (int rank = 0; rank < placement.numRanks(); ++rank)
    for (size_t position = 0; position < schedule.ranks[rank].size(); ++position)
      if (const Action &action = schedule.ranks[rank][position]; action.kind != ActionKind::BackwardWeight)
        positionOf(isBackward(action.kind), schedule.stageOf(rank, action), action.microbatch) = position;
  for (int stage = 0; stage + 1 < placement.numStages(); ++stage)
    for (int microbatch = 0; microbatch < schedule.numMicrobatches; ++microbatch) {
      addTransfer(/*gradient=*/false, stage, stage + 1, microbatch, channels.activation[stage]);
      if (positionOf(/*backward=*/true, stage, microbatch) != kNowhere)
        addTransfer(/*gradient=*/true, stage + 1, stage, microbatch, channels.gradient[stage + 1]);
    }
}

void TimelineBuilder::addTransfer(bool gradient, int from, int to, int microbatch, int channel) {
  if (channel == kNoChannel)
    return;
  size_t producer = positionOf(gradient, from, microbatch), consumer = positionOf(gradient, to, microbatch);
  transfers.push_back(
      {gradient, from, to, microbatch, channel, producer + 1, consumer - std::min(consumer, distance), 0});
}

// Transfers that take half of a forward. An order made for these costs at most 5 % at others between none and a whole
// forward; one made for free transfers costs up to 26 %.
static constexpr int64_t kUnitTicks = 8, kTransferTicks = 4;

/// Runs the schedule. There a transfer takes place when the sent value is made and both ranks may issue it, which is
/// before it is needed: the order of these times suits all ranks.
absl::Status TimelineBuilder::orderTransfers() {
  Schedule serial = schedule; // actions that may overlap are issued one after the other
  std::vector<std::vector<int64_t>> starts, ends;
  for (std::vector<Action> &actions : serial.ranks) {
    for (Action &action : actions)
      action.overlapsNext = false;
    starts.emplace_back(actions.size());
    ends.emplace_back(actions.size());
  }
  ScheduleProgress run(serial, kTransferTicks, [&](int rank, size_t position, int64_t start) {
    starts[rank][position] = start;
    return ends[rank][position] = start + kUnitTicks * StageCosts().of(serial.ranks[rank][position].kind);
  });
  if (!run.finished())
    return absl::InternalError("the schedule does not come to its end");
  for (Transfer &transfer : transfers)
    transfer.time = std::max(ends[placement.rankOf(transfer.fromStage)][transfer.sendBefore - 1],
                             starts[placement.rankOf(transfer.toStage)][transfer.receiveBefore]);
  // Among transfers at one time, ranks receive before they send, along the flow of activations, or of gradients.
  std::sort(transfers.begin(), transfers.end(), [](const Transfer &a, const Transfer &b) {
    auto keyOf = [](const Transfer &transfer) {
      return std::make_tuple(transfer.time, transfer.gradient,
                             transfer.gradient ? -transfer.fromStage : transfer.fromStage, transfer.microbatch);
    };
    return keyOf(a) < keyOf(b);
  });
  return absl::OkStatus();
}

std::vector<TimelineStep> TimelineBuilder::stepsOf(int rank) const {
  const std::vector<Action> &actions = schedule.ranks[rank];
  std::vector<TimelineStep> steps;
  size_t computed = 0;
  auto computeUntil = [&](size_t position) {
    for (; computed < position; ++computed) {
      const Action &action = actions[computed];
      steps.push_back({stepOf(action.kind), schedule.stageOf(rank, action), action.microbatch, kNoChannel});
    }
  };
  for (const Transfer &transfer : transfers) {
    if (placement.rankOf(transfer.fromStage) == rank) {
      computeUntil(transfer.sendBefore);
      steps.push_back({transfer.gradient ? StepKind::SendGradient : StepKind::SendActivation, transfer.fromStage,
                       transfer.microbatch, transfer.channel});
    } else if (placement.rankOf(transfer.toStage) == rank) {
      computeUntil(transfer.receiveBefore);
      steps.push_back({transfer.gradient ? StepKind::ReceiveGradient : StepKind::ReceiveActivation, transfer.toStage,
                       transfer.microbatch, transfer.channel});
    }
  }
  computeUntil(actions.size());
  return steps;
}

absl::StatusOr<std::vector<std::vector<TimelineStep>>> TimelineBuilder::make() {
  findTransfers();
  if (absl::Status status = orderTransfers(); !status.ok())
    return status;
  std::vector<std::vector<TimelineStep>> ranks;
  for (int rank = 0; rank < placement.numRanks(); ++rank)
    ranks.push_back(stepsOf(rank));
  return ranks;
}

/// The schedule need not have backwards.
static absl::StatusOr<PipelineTimeline> makeTimeline(const Schedule &schedule, bool withGradients,
                                                     const TimelineOptions &options) {
  if (options.prefetchDistance < 0)
    return absl::InvalidArgumentError(absl::StrCat("a prefetch distance of ", options.prefetchDistance,
                                                   " computations is negative; 0 receives when a computation waits"));
  const Placement &placement = schedule.placement;
  StageChannels channels = assignChannels(placement, withGradients);
  PipelineTimeline timeline;
  timeline.numMicrobatches = schedule.numMicrobatches;
  timeline.slots.resize(placement.numStages());
  absl::StatusOr<std::vector<std::vector<TimelineStep>>> ranks =
      TimelineBuilder(schedule, channels, static_cast<size_t>(options.prefetchDistance)).make();
  if (!ranks.ok())
    return ranks.status();
  timeline.ranks = *std::move(ranks);
  timeline.channels = std::move(channels.channels);
  if (absl::Status status = countSlots(placement, withGradients, timeline); !status.ok())
    return status;
  return timeline;
}

absl::StatusOr<PipelineTimeline> bowline::makePipelineTimeline(const Schedule &schedule,
                                                               const TimelineOptions &options) {
  if (absl::Status status = validateSchedule(schedule); !status.ok())
    return status;
  return makeTimeline(schedule, /*withGradients=*/true, options);
}

absl::StatusOr<PipelineTimeline> bowline::makeForwardTimeline(const Placement &placement,
                                                              const TimelineOptions &options) {
  Schedule schedule{placement, /*numMicrobatches=*/1, {}};
  schedule.ranks.resize(placement.numRanks());
  // Stages run from the first to the last, and each rank has its own in this order.
  for (int stage = 0; stage < placement.numStages(); ++stage)
    schedule.ranks[placement.rankOf(stage)].push_back(
        {ActionKind::Forward, /*overlapsNext=*/false, static_cast<uint16_t>(placement.chunkOf(stage)), 0});
  return makeTimeline(schedule, /*withGradients=*/false, options);
}
