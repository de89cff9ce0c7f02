//===- TimelineModel.cpp - Executes pipeline timelines, event by event
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/Unit/Schedules/TimelineModel.h"
#include "gtest/gtest.h"

#include "absl/strings/str_cat.h"

#include <deque>
#include <map>
#include <queue>
#include <set>
#include <tuple>
#include <vector>

using namespace bowline;
using namespace bowline::test;

namespace {

/// The slots of one class.
class Slots {
public:
  Slots(const char *name, const PipelineTimeline &timeline, int StageSlots::*count) : name(name) {
    for (const StageSlots &slots : timeline.slots)
      occupants.emplace_back(slots.*count, kFree);
  }
  bool isFree(int stage, int microbatch) const {
    const std::vector<int> &slots = occupants[stage];
    return slots.empty() || slots[microbatch % slots.size()] == kFree;
  }
  void begin(int stage, int microbatch, std::string &collision) {
    std::vector<int> &slots = occupants[stage];
    if (!slots.empty() && isFree(stage, microbatch))
      slots[microbatch % slots.size()] = microbatch;
    else if (collision.empty())
      collision = absl::StrCat(name, " of stage ", stage, ", microbatch ", microbatch, " of ", slots.size(), " slots");
  }
  void end(int stage, int microbatch) {
    std::vector<int> &slots = occupants[stage];
    if (!slots.empty() && slots[microbatch % slots.size()] == microbatch)
      slots[microbatch % slots.size()] = kFree;
  }

private:
  static constexpr int kFree = -1;
  const char *name;
  std::vector<std::vector<int>> occupants; // per stage and slot
};

class Model {
public:
  Model(const Placement &placement, const PipelineTimeline &timeline, const StepDuration &duration, bool waitsForSlots)
      : placement(placement), timeline(timeline), duration(duration), waitsForSlots(waitsForSlots),
        stash("stash", timeline, &StageSlots::stash),
        receivedActivation("received activation", timeline, &StageSlots::receivedActivation),
        receivedGradient("received gradient", timeline, &StageSlots::receivedGradient),
        sentActivation("sent activation", timeline, &StageSlots::sentActivation),
        sentGradient("sent gradient", timeline, &StageSlots::sentGradient),
        weightInputs("weight inputs", timeline, &StageSlots::weightInputs), hosts(timeline.ranks.size()),
        isTransferring(timeline.channels.size()) {
    for (const std::vector<TimelineStep> &steps : timeline.ranks)
      for (const TimelineStep &step : steps)
        trains |= step.kind != StepKind::Forward && step.channel == kNoChannel;
  }

  ModelResult run() {
    while (true) {
      settle();
      if (events.empty())
        break;
      for (now = std::get<0>(events.top()); !events.empty() && std::get<0>(events.top()) == now;) {
        auto [time, isTransfer, index] = events.top();
        events.pop();
        isTransfer ? endTransfer(index) : endComputation(index);
      }
    }
    result.makespan = now;
    for (size_t rank = 0; rank < hosts.size(); ++rank)
      if (hosts[rank].position < timeline.ranks[rank].size())
        result.stuck = absl::StrCat("rank ", rank, ": ", describe(timeline.ranks[rank][hosts[rank].position]));
    for (const auto &[key, queue] : queues)
      if (!queue.empty() && result.stuck.empty())
        result.stuck = absl::StrCat("rank ", key.first, ": ", describe(queue.front()));
    return result;
  }

private:
  struct Host {
    size_t position = 0;
    bool isBusy = false;
  };
  using Value = std::tuple<bool, int, int>; // gradient, stage that made it, microbatch

  bool exists(int stage) const { return stage >= 0 && stage < placement.numStages(); }
  bool isLocal(int stage, int other) const {
    return exists(other) && placement.rankOf(stage) == placement.rankOf(other);
  }
  bool isRemote(int stage, int other) const { return exists(other) && !isLocal(stage, other); }
  static bool isBackward(StepKind kind) { return kind == StepKind::Backward || kind == StepKind::BackwardInput; }

  void settle() {
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t rank = 0; rank < hosts.size(); ++rank)
        while (issue(static_cast<int>(rank)))
          moved = true;
      for (size_t channel = 0; channel < isTransferring.size(); ++channel)
        moved |= startTransfer(static_cast<int>(channel));
    }
  }

  bool issue(int rank) {
    Host &host = hosts[rank];
    if (host.isBusy || host.position == timeline.ranks[rank].size())
      return false;
    const TimelineStep &step = timeline.ranks[rank][host.position];
    if (step.channel != kNoChannel) {
      if (step.kind == StepKind::ReceiveActivation)
        receivedActivation.begin(step.stage, step.microbatch, result.collision);
      if (step.kind == StepKind::ReceiveGradient)
        receivedGradient.begin(step.stage, step.microbatch, result.collision);
      queueOf(rank, step.channel).push_back(step);
      ++host.position;
      return true;
    }
    if (!canCompute(step))
      return false;
    write(step);
    host.isBusy = true;
    events.push({now + duration(step), false, rank});
    return true;
  }

  /// Waits as the header of timelines says. Expects the values that must be there without waiting.
  bool canCompute(const TimelineStep &step) {
    int stage = step.stage, microbatch = step.microbatch;
    bool forward = step.kind == StepKind::Forward, backward = isBackward(step.kind);
    int source = forward ? stage - 1 : stage + 1, target = forward ? stage + 1 : stage - 1;
    if (forward || backward) {
      if (isRemote(stage, source) && !arrived.count({backward, source, microbatch}))
        return false;
      if (isLocal(stage, source))
        EXPECT_TRUE(made.count({backward, source, microbatch})) << describe(step);
      const Slots &slots = forward ? sentActivation : sentGradient;
      if (waitsForSlots && isRemote(stage, target) && !slots.isFree(stage, microbatch))
        return false;
    }
    if (backward)
      EXPECT_TRUE(made.count({false, stage, microbatch})) << describe(step);
    if (step.kind == StepKind::BackwardWeight)
      EXPECT_TRUE(made.count({true, stage, microbatch})) << describe(step);
    return true;
  }

  void write(const TimelineStep &step) {
    bool forward = step.kind == StepKind::Forward;
    if (forward && trains)
      stash.begin(step.stage, step.microbatch, result.collision);
    if (step.kind == StepKind::BackwardInput)
      weightInputs.begin(step.stage, step.microbatch, result.collision);
    if (!forward && !isBackward(step.kind))
      return;
    int target = forward ? step.stage + 1 : step.stage - 1;
    if (isRemote(step.stage, target))
      (forward ? sentActivation : sentGradient).begin(step.stage, step.microbatch, result.collision);
    if (isLocal(step.stage, target))
      (forward ? receivedActivation : receivedGradient).begin(target, step.microbatch, result.collision);
  }

  void endComputation(int rank) {
    const TimelineStep &step = timeline.ranks[rank][hosts[rank].position++];
    hosts[rank].isBusy = false;
    if (step.kind != StepKind::BackwardWeight)
      made.insert({step.kind != StepKind::Forward, step.stage, step.microbatch});
    if (step.kind == StepKind::BackwardWeight)
      weightInputs.end(step.stage, step.microbatch);
    bool isLast = step.kind == StepKind::Backward || step.kind == StepKind::BackwardWeight;
    if (isLast || !trains)
      for (Slots *slots : {&stash, &receivedActivation, &receivedGradient})
        slots->end(step.stage, step.microbatch);
  }

  bool startTransfer(int channel) {
    const PipelineChannel &ends = timeline.channels[channel];
    std::deque<TimelineStep> &sends = queueOf(ends.sender, channel), &receives = queueOf(ends.receiver, channel);
    if (isTransferring[channel] || sends.empty() || receives.empty())
      return false;
    const TimelineStep &send = sends.front(), &receive = receives.front();
    bool gradient = send.kind == StepKind::SendGradient;
    if (send.channel != channel || receive.channel != channel || send.microbatch != receive.microbatch ||
        receive.kind != (gradient ? StepKind::ReceiveGradient : StepKind::ReceiveActivation) ||
        receive.stage != send.stage + (gradient ? -1 : 1))
      return false;
    EXPECT_TRUE(made.count({gradient, send.stage, send.microbatch})) << describe(send);
    isTransferring[channel] = true;
    events.push({now + duration(send), true, channel});
    return true;
  }

  void endTransfer(int channel) {
    const PipelineChannel &ends = timeline.channels[channel];
    std::deque<TimelineStep> &sends = queueOf(ends.sender, channel), &receives = queueOf(ends.receiver, channel);
    const TimelineStep send = sends.front();
    sends.pop_front(), receives.pop_front();
    isTransferring[channel] = false;
    bool gradient = send.kind == StepKind::SendGradient;
    arrived.insert({gradient, send.stage, send.microbatch});
    (gradient ? sentGradient : sentActivation).end(send.stage, send.microbatch);
  }

  std::deque<TimelineStep> &queueOf(int rank, int channel) { return queues[{rank, timeline.channels[channel].name}]; }

  const Placement &placement;
  const PipelineTimeline &timeline;
  const StepDuration &duration;
  bool waitsForSlots;
  bool trains = false;
  Slots stash, receivedActivation, receivedGradient, sentActivation, sentGradient, weightInputs;
  std::vector<Host> hosts;
  std::vector<char> isTransferring; // per channel
  std::map<std::pair<int, std::string>, std::deque<TimelineStep>> queues;
  std::set<Value> made, arrived;
  using Event = std::tuple<int64_t, bool, int>; // time, whether a transfer, rank or channel
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
  int64_t now = 0;
  ModelResult result;
};

} // namespace

ModelResult bowline::test::executeTimeline(const Placement &placement, const PipelineTimeline &timeline,
                                           const StepDuration &duration, bool waitsForSlots) {
  return Model(placement, timeline, duration, waitsForSlots).run();
}
