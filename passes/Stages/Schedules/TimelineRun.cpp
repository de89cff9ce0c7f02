//===- TimelineRun.cpp - When the steps of a timeline run
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Stages/Schedules/TimelineRun.h"
#include "passes/Stages/Schedules/Simulator.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

using namespace bowline;

int64_t bowline::unitCostOf(StepKind computation) {
  StageCosts costs;
  switch (computation) {
  case StepKind::Forward:
    return costs.of(ActionKind::Forward);
  case StepKind::Backward:
    return costs.of(ActionKind::Backward);
  case StepKind::BackwardInput:
    return costs.of(ActionKind::BackwardInput);
  default:
    return costs.of(ActionKind::BackwardWeight);
  }
}

namespace {

constexpr int64_t kNothing = -1; // nothing is received
constexpr int64_t kNotRun = -2;

/// Times are maxima and sums over the steps that a step waits for, so that the order of ranks does not matter.
class TimelineRun {
public:
  TimelineRun(const PipelineTimeline &timeline, const TimelineCosts &costs);

  absl::StatusOr<TimelineTimes> run();

private:
  struct Entry {
    size_t step;
    int64_t issued;
  };
  /// A channel with the queues of both of its ends.
  struct Channel {
    std::vector<Entry> sends, receives;
    size_t done = 0;
    int64_t free = 0;
  };

  int64_t &arrivalOf(bool gradient, int stage, int microbatch) {
    return arrivals[(size_t{2} * stage + gradient) * timeline.numMicrobatches + microbatch];
  }
  /// Returns when the received input of a computation is there.
  int64_t inputOf(const TimelineStep &step);
  void advance(int rank);
  void transfer(int channel);

  const PipelineTimeline &timeline;
  TimelineCosts costs;
  TimelineTimes times;
  std::vector<size_t> positions; // per rank
  std::vector<int64_t> clocks;   // per rank
  std::vector<Channel> channels;
  std::vector<int64_t> arrivals;
  std::vector<int> runnable;
};

} // namespace

TimelineRun::TimelineRun(const PipelineTimeline &timeline, const TimelineCosts &costs)
    : timeline(timeline), costs(costs), positions(timeline.ranks.size()), clocks(timeline.ranks.size()),
      channels(timeline.channels.size()),
      arrivals(size_t{2} * timeline.slots.size() * timeline.numMicrobatches, kNothing) {
  for (size_t rank = 0; rank < timeline.ranks.size(); ++rank) {
    times.ranks.emplace_back(timeline.ranks[rank].size(), kNotRun);
    runnable.push_back(static_cast<int>(rank));
    for (const TimelineStep &step : timeline.ranks[rank]) {
      if (step.kind == StepKind::ReceiveActivation || step.kind == StepKind::ReceiveGradient)
        arrivalOf(step.kind == StepKind::ReceiveGradient, step.stage, step.microbatch) = kNotRun;
    }
  }
}

int64_t TimelineRun::inputOf(const TimelineStep &step) {
  if (step.kind == StepKind::BackwardWeight)
    return kNothing;
  return arrivalOf(step.kind != StepKind::Forward, step.stage, step.microbatch);
}

void TimelineRun::advance(int rank) {
  const std::vector<TimelineStep> &steps = timeline.ranks[rank];
  for (size_t &position = positions[rank]; position < steps.size(); ++position) {
    const TimelineStep &step = steps[position];
    if (step.channel != kNoChannel) {
      Channel &channel = channels[step.channel];
      bool sends = step.kind == StepKind::SendActivation || step.kind == StepKind::SendGradient;
      (sends ? channel.sends : channel.receives).push_back({position, clocks[rank]});
      transfer(step.channel);
      continue;
    }
    int64_t input = inputOf(step);
    if (input == kNotRun)
      return;
    times.ranks[rank][position] = std::max(clocks[rank], input);
    clocks[rank] = times.ranks[rank][position] + costs.unit * unitCostOf(step.kind);
  }
}

void TimelineRun::transfer(int index) {
  Channel &channel = channels[index];
  int sender = timeline.channels[index].sender, receiver = timeline.channels[index].receiver;
  while (channel.done < std::min(channel.sends.size(), channel.receives.size())) {
    const Entry &send = channel.sends[channel.done], &receive = channel.receives[channel.done];
    const TimelineStep &from = timeline.ranks[sender][send.step], &to = timeline.ranks[receiver][receive.step];
    bool gradient = from.kind == StepKind::SendGradient;
    if (from.microbatch != to.microbatch || from.stage + (gradient ? -1 : 1) != to.stage)
      return; // never
    channel.free = std::max({channel.free, send.issued, receive.issued}) + costs.transfer;
    ++channel.done;
    times.ranks[sender][send.step] = times.ranks[receiver][receive.step] = channel.free;
    arrivalOf(gradient, to.stage, to.microbatch) = channel.free;
    runnable.push_back(receiver);
  }
}

absl::StatusOr<TimelineTimes> TimelineRun::run() {
  while (!runnable.empty()) {
    int rank = runnable.back();
    runnable.pop_back();
    advance(rank);
  }
  for (size_t rank = 0; rank < times.ranks.size(); ++rank)
    for (size_t step = 0; step < times.ranks[rank].size(); ++step)
      if (times.ranks[rank][step] == kNotRun)
        return absl::InternalError(absl::StrCat("the pipeline's timeline hangs: rank ", rank, " never ends its step ",
                                                step, ", ", describe(timeline.ranks[rank][step])));
  return std::move(times);
}

absl::StatusOr<TimelineTimes> bowline::runTimeline(const PipelineTimeline &timeline, const TimelineCosts &costs) {
  return TimelineRun(timeline, costs).run();
}
