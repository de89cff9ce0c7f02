//===- TimelineSlots.cpp - How many microbatches' buffers each stage needs
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Stages/Schedules/TimelineSlots.h"
#include "passes/Stages/Schedules/TimelineRun.h"

#include <algorithm>
#include <deque>
#include <set>
#include <utility>

using namespace bowline;

/// A forward takes this many ticks where slots are counted. A transfer takes one, half as many, or as many.
static constexpr int64_t kTicks = 8;

namespace {

/// The microbatches alive in one class of one stage.
class Window {
public:
  void begin(int microbatch) {
    alive.insert(microbatch);
    largest = std::max(largest, *alive.rbegin() - *alive.begin() + 1);
  }
  void end(int microbatch) { alive.erase(microbatch); }
  int slots() const { return largest; }

private:
  std::set<int> alive;
  int largest = 0;
};

/// The same where transfers end a life. Those of a stage end in the order in which they are issued.
class SendWindow {
public:
  void begin(int microbatch, int64_t now) {
    for (; !sends.empty() && sends.front().end <= now; sends.pop_front())
      window.end(sends.front().microbatch);
    window.begin(microbatch);
  }
  void send(int microbatch, int64_t end) { sends.push_back({microbatch, end}); }
  /// One is being written while one is under way, unless there is but one microbatch.
  int slots(int numMicrobatches) const {
    return window.slots() == 0 ? 0 : std::max(window.slots(), std::min(numMicrobatches, 2));
  }

private:
  struct Send {
    int microbatch;
    int64_t end;
  };
  Window window;
  std::deque<Send> sends;
};

struct StageWindows {
  Window stash, receivedActivation, receivedGradient, weightInputs;
  SendWindow sentActivation, sentGradient;
};

class SlotCount {
public:
  SlotCount(const Placement &placement, bool trains, const PipelineTimeline &timeline, const TimelineTimes &times)
      : placement(placement), trains(trains), timeline(timeline), times(times), windows(placement.numStages()) {}

  std::vector<StageSlots> count();

private:
  bool isOnSameRank(int stage, int other) const {
    return other >= 0 && other < placement.numStages() && placement.rankOf(stage) == placement.rankOf(other);
  }
  bool isElsewhere(int stage, int other) const {
    return other >= 0 && other < placement.numStages() && placement.rankOf(stage) != placement.rankOf(other);
  }
  void take(const TimelineStep &step, int64_t time);
  /// Begin the lives of the slots that F, and B or I, write.
  void writeActivation(const TimelineStep &step, int64_t start);
  void writeGradient(const TimelineStep &step, int64_t start);
  /// Frees the slots of a stage and microbatch, after their last computation.
  void release(const TimelineStep &step);

  const Placement &placement;
  bool trains;
  const PipelineTimeline &timeline;
  const TimelineTimes &times;
  std::vector<StageWindows> windows;
};

} // namespace

std::vector<StageSlots> SlotCount::count() {
  for (size_t rank = 0; rank < timeline.ranks.size(); ++rank)
    for (size_t step = 0; step < timeline.ranks[rank].size(); ++step)
      take(timeline.ranks[rank][step], times.ranks[rank][step]);

  std::vector<StageSlots> slots;
  for (const StageWindows &window : windows)
    slots.push_back({window.stash.slots(), window.receivedActivation.slots(), window.receivedGradient.slots(),
                     window.sentActivation.slots(timeline.numMicrobatches),
                     window.sentGradient.slots(timeline.numMicrobatches), window.weightInputs.slots()});
  for (int stage = 0; stage + 1 < placement.numStages(); ++stage) {
    if (!isOnSameRank(stage, stage + 1))
      continue;
    slots[stage].sentActivation = slots[stage + 1].receivedActivation;
    slots[stage + 1].sentGradient = slots[stage].receivedGradient;
  }
  return slots;
}

void SlotCount::take(const TimelineStep &step, int64_t time) {
  StageWindows &window = windows[step.stage];
  switch (step.kind) {
  case StepKind::Forward:
    if (trains)
      window.stash.begin(step.microbatch);
    writeActivation(step, time);
    if (!trains)
      release(step);
    break;
  case StepKind::Backward:
    writeGradient(step, time);
    release(step);
    break;
  case StepKind::BackwardInput:
    window.weightInputs.begin(step.microbatch);
    writeGradient(step, time);
    break;
  case StepKind::BackwardWeight:
    window.weightInputs.end(step.microbatch);
    release(step);
    break;
  case StepKind::SendActivation:
    window.sentActivation.send(step.microbatch, time);
    break;
  case StepKind::SendGradient:
    window.sentGradient.send(step.microbatch, time);
    break;
  case StepKind::ReceiveActivation:
    window.receivedActivation.begin(step.microbatch);
    break;
  case StepKind::ReceiveGradient:
    window.receivedGradient.begin(step.microbatch);
    break;
  }
}

void SlotCount::writeActivation(const TimelineStep &step, int64_t start) {
  int next = step.stage + 1;
  if (isElsewhere(step.stage, next))
    windows[step.stage].sentActivation.begin(step.microbatch, start);
  if (isOnSameRank(step.stage, next))
    windows[next].receivedActivation.begin(step.microbatch);
}

void SlotCount::writeGradient(const TimelineStep &step, int64_t start) {
  int previous = step.stage - 1;
  if (isElsewhere(step.stage, previous))
    windows[step.stage].sentGradient.begin(step.microbatch, start);
  if (isOnSameRank(step.stage, previous))
    windows[previous].receivedGradient.begin(step.microbatch);
}

void SlotCount::release(const TimelineStep &step) {
  StageWindows &window = windows[step.stage];
  window.stash.end(step.microbatch);
  window.receivedActivation.end(step.microbatch);
  window.receivedGradient.end(step.microbatch);
}

absl::Status bowline::countSlots(const Placement &placement, bool trains, PipelineTimeline &timeline) {
  std::vector<StageSlots> slots(placement.numStages());
  for (TimelineCosts costs :
       {TimelineCosts{kTicks, 1}, TimelineCosts{kTicks, kTicks / 2}, TimelineCosts{kTicks, kTicks}}) {
    absl::StatusOr<TimelineTimes> times = runTimeline(timeline, costs);
    if (!times.ok())
      return times.status();
    std::vector<StageSlots> counted = SlotCount(placement, trains, timeline, *times).count();
    for (size_t stage = 0; stage < slots.size(); ++stage) {
      // The others are the same every time.
      counted[stage].sentActivation = std::max(counted[stage].sentActivation, slots[stage].sentActivation);
      counted[stage].sentGradient = std::max(counted[stage].sentGradient, slots[stage].sentGradient);
    }
    slots = std::move(counted);
  }
  timeline.slots = std::move(slots);
  return absl::OkStatus();
}
