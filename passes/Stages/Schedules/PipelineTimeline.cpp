//===- PipelineTimeline.cpp - What each rank of a pipeline issues, transfers included
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Stages/Schedules/PipelineTimeline.h"
#include "passes/Stages/Schedules/PipelineChannels.h"
#include "passes/Stages/Schedules/TimelineSlots.h"
#include "passes/Stages/Schedules/Validator.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <utility>

using namespace bowline;

std::string bowline::describe(const TimelineStep &step) {
  constexpr const char *kNames[] = {"Forward",        "Backward",          "BackwardInput", "BackwardWeight",
                                    "SendActivation", "ReceiveActivation", "SendGradient",  "ReceiveGradient"};
  return absl::StrCat(kNames[static_cast<size_t>(step.kind)], " ", step.microbatch, " of stage ", step.stage);
}

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

/// The steps of one rank.
class RankSteps {
public:
  RankSteps(const Placement &placement, const StageChannels &channels, int rank)
      : placement(placement), channels(channels), rank(rank) {}

  std::vector<TimelineStep> make(const std::vector<Action> &actions, size_t distance) && {
    size_t received = 0; // actions whose receives are issued
    for (size_t position = 0; position < actions.size(); ++position) {
      for (; received < actions.size() && received <= position + distance; ++received)
        addReceive(actions[received]);
      const Action &action = actions[position];
      steps.push_back({stepOf(action.kind), placement.stageOf(rank, action.chunk), action.microbatch, kNoChannel});
      addSend(action);
    }
    return std::move(steps);
  }

private:
  // The receives of a channel are in the order of the computations that need them, and the validator proved that it is
  // the order of the computations that make what is sent.
  void addReceive(const Action &action) {
    int stage = placement.stageOf(rank, action.chunk);
    if (action.kind == ActionKind::Forward && stage > 0)
      addTransfer(StepKind::ReceiveActivation, stage, action.microbatch, channels.activation[stage - 1]);
    if (isBackward(action.kind) && stage + 1 < placement.numStages())
      addTransfer(StepKind::ReceiveGradient, stage, action.microbatch, channels.gradient[stage + 1]);
  }
  void addSend(const Action &action) {
    int stage = placement.stageOf(rank, action.chunk);
    if (action.kind == ActionKind::Forward)
      addTransfer(StepKind::SendActivation, stage, action.microbatch, channels.activation[stage]);
    if (isBackward(action.kind))
      addTransfer(StepKind::SendGradient, stage, action.microbatch, channels.gradient[stage]);
  }
  void addTransfer(StepKind kind, int stage, int microbatch, int channel) {
    if (channel != kNoChannel)
      steps.push_back({kind, stage, microbatch, channel});
  }
  static bool isBackward(ActionKind kind) { return kind == ActionKind::Backward || kind == ActionKind::BackwardInput; }

  const Placement &placement;
  const StageChannels &channels;
  int rank;
  std::vector<TimelineStep> steps;
};

} // namespace

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
  for (int rank = 0; rank < placement.numRanks(); ++rank)
    timeline.ranks.push_back(
        RankSteps(placement, channels, rank).make(schedule.ranks[rank], static_cast<size_t>(options.prefetchDistance)));
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
  // From the first stage to the last: each rank has its own in this order.
  for (int stage = 0; stage < placement.numStages(); ++stage)
    schedule.ranks[placement.rankOf(stage)].push_back(
        {ActionKind::Forward, /*overlapsNext=*/false, static_cast<uint16_t>(placement.chunkOf(stage)), 0});
  return makeTimeline(schedule, /*withGradients=*/false, options);
}
