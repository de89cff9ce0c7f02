//===- Simulator.cpp - Time and memory of a schedule
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Stages/Schedules/Simulator.h"
#include "passes/Stages/Schedules/ScheduleProgress.h"
#include "passes/Stages/Schedules/Validator.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

using namespace bowline;

int64_t StageCosts::of(ActionKind kind) const {
  switch (kind) {
  case ActionKind::Forward:
    return forward;
  case ActionKind::Backward:
    return backward.value_or(backwardInput + backwardWeight);
  case ActionKind::BackwardInput:
    return backwardInput;
  case ActionKind::BackwardWeight:
    return backwardWeight;
  }
  return 0;
}

static absl::Status verifyCosts(const Schedule &schedule, const ScheduleCosts &costs) {
  int numStages = schedule.placement.numStages();
  if (costs.stages.size() != 1 && costs.stages.size() != static_cast<size_t>(numStages))
    return absl::InvalidArgumentError(absl::StrCat("costs of ", costs.stages.size(), " stages for a schedule of ",
                                                   numStages, "; give one per stage, or one for all"));
  int64_t largest = 0;
  auto accept = [&](int64_t cost) {
    largest = std::max(largest, cost);
    return cost >= 0;
  };
  bool positive = accept(costs.transfer) && accept(costs.overlapped.value_or(0));
  for (const StageCosts &stage : costs.stages)
    positive = positive && accept(stage.forward) && accept(stage.backwardInput) && accept(stage.backwardWeight) &&
               accept(stage.backward.value_or(0));
  if (!positive)
    return absl::InvalidArgumentError("a cost of the schedule is negative; costs are times");
  // No longer than everything one after the other: per forward at most F, I, W and two transfers.
  int64_t forwards = int64_t{numStages} * schedule.numMicrobatches;
  if (largest > INT64_MAX / 8 / std::max<int64_t>(forwards, 1))
    return absl::InvalidArgumentError("the sum of the schedule's costs overflows; use a longer unit of time");
  return absl::OkStatus();
}

static PeakActivations findPeak(const std::vector<Action> &actions) {
  PeakActivations held, peak;
  for (const Action &action : actions) {
    bool backward = action.kind == ActionKind::Backward;
    if (action.kind == ActionKind::Forward)
      ++held.untilInput, ++held.untilWeight;
    if (backward || action.kind == ActionKind::BackwardInput)
      --held.untilInput;
    if (backward || action.kind == ActionKind::BackwardWeight)
      --held.untilWeight;
    peak.untilInput = std::max(peak.untilInput, held.untilInput);
    peak.untilWeight = std::max(peak.untilWeight, held.untilWeight);
  }
  return peak;
}

absl::StatusOr<SimulatedStep> bowline::simulateSchedule(const Schedule &schedule, const ScheduleCosts &costs) {
  if (absl::Status status = validateSchedule(schedule); !status.ok())
    return status;
  if (absl::Status status = verifyCosts(schedule, costs); !status.ok())
    return status;

  SimulatedStep step;
  step.ranks.resize(schedule.ranks.size());
  auto costOf = [&](int rank, const Action &action) {
    size_t stage = costs.stages.size() == 1 ? 0 : schedule.stageOf(rank, action);
    return costs.stages[stage].of(action.kind);
  };
  ScheduleProgress progress(schedule, costs.transfer, [&](int rank, size_t position, int64_t start) {
    SimulatedRank &simulated = step.ranks[rank];
    const std::vector<Action> &actions = schedule.ranks[rank];
    int64_t duration = costOf(rank, actions[position]);
    size_t size = blockEnd(actions, position) - position;
    if (size == 2)
      duration = costs.overlapped.value_or(duration + costOf(rank, actions[position + 1]));
    simulated.starts.insert(simulated.starts.end(), size, start);
    simulated.ends.insert(simulated.ends.end(), size, start + duration);
    simulated.busy += duration;
    return start + duration;
  });

  for (const SimulatedRank &rank : step.ranks)
    step.makespan = std::max(step.makespan, rank.ends.back());
  for (size_t rank = 0; rank < step.ranks.size(); ++rank) {
    SimulatedRank &simulated = step.ranks[rank];
    simulated.bubble = step.makespan - simulated.busy;
    simulated.innerBubble = simulated.ends.back() - simulated.starts.front() - simulated.busy;
    simulated.peak = findPeak(schedule.ranks[rank]);
  }
  return step;
}

int64_t SimulatedStep::maxBubble() const {
  int64_t largest = 0;
  for (const SimulatedRank &rank : ranks)
    largest = std::max(largest, rank.bubble);
  return largest;
}

int64_t SimulatedStep::maxInnerBubble() const {
  int64_t largest = 0;
  for (const SimulatedRank &rank : ranks)
    largest = std::max(largest, rank.innerBubble);
  return largest;
}

PeakActivations SimulatedStep::maxPeak() const {
  PeakActivations largest;
  for (const SimulatedRank &rank : ranks) {
    largest.untilInput = std::max(largest.untilInput, rank.peak.untilInput);
    largest.untilWeight = std::max(largest.untilWeight, rank.peak.untilWeight);
  }
  return largest;
}
