//===- ScheduleProgress.cpp - Which actions of a schedule can run, and when
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Stages/Schedules/ScheduleProgress.h"

#include <algorithm>
#include <utility>

using namespace bowline;

static constexpr int64_t kNotYet = -1;

NeededOutputs bowline::inputsOf(const Schedule &schedule, int rank, const Action &action) {
  int stage = schedule.stageOf(rank, action);
  NeededOutputs inputs;
  auto need = [&](bool backward, int from) { inputs.outputs[inputs.count++] = {backward, from}; };
  switch (action.kind) {
  case ActionKind::Forward:
    if (stage > 0)
      need(false, stage - 1);
    break;
  case ActionKind::Backward:
  case ActionKind::BackwardInput:
    need(false, stage);
    if (stage + 1 < schedule.placement.numStages())
      need(true, stage + 1);
    break;
  case ActionKind::BackwardWeight:
    need(true, stage);
    break;
  }
  return inputs;
}

size_t bowline::blockEnd(const std::vector<Action> &actions, size_t position) {
  return position + (actions[position].overlapsNext ? 2 : 1);
}

ScheduleProgress::ScheduleProgress(const Schedule &schedule, int64_t transfer, EndOfBlock endOfBlock)
    : schedule(schedule), transfer(transfer), endOfBlock(std::move(endOfBlock)), positions(schedule.ranks.size()),
      ends(schedule.ranks.size()),
      available(size_t{2} * schedule.placement.numStages() * schedule.numMicrobatches, kNotYet) {
  for (int rank = schedule.placement.numRanks() - 1; rank >= 0; --rank)
    runnable.push_back(rank);
  while (!runnable.empty()) {
    int rank = runnable.back();
    runnable.pop_back();
    int64_t start = 0;
    while (positions[rank] < schedule.ranks[rank].size() && isReady(rank, start))
      runBlock(rank, start);
  }
}

size_t ScheduleProgress::indexOf(NeededOutput output, int microbatch) const {
  size_t stage = size_t{2} * output.stage + output.backward;
  return stage * schedule.numMicrobatches + microbatch;
}

bool ScheduleProgress::isReady(int rank, int64_t &start) const {
  const std::vector<Action> &actions = schedule.ranks[rank];
  start = ends[rank];
  for (size_t position = positions[rank], end = blockEnd(actions, position); position < end; ++position) {
    NeededOutputs inputs = inputsOf(schedule, rank, actions[position]);
    for (int i = 0; i < inputs.count; ++i) {
      int64_t since = available[indexOf(inputs.outputs[i], actions[position].microbatch)];
      if (since == kNotYet)
        return false;
      bool isRemote = schedule.placement.rankOf(inputs.outputs[i].stage) != rank;
      start = std::max(start, since + (isRemote ? transfer : 0));
    }
  }
  return true;
}

void ScheduleProgress::runBlock(int rank, int64_t start) {
  const std::vector<Action> &actions = schedule.ranks[rank];
  size_t begin = positions[rank];
  ends[rank] = endOfBlock(rank, begin, start);
  positions[rank] = blockEnd(actions, begin);
  for (size_t position = begin; position < positions[rank]; ++position)
    publish(rank, actions[position], ends[rank]);
}

void ScheduleProgress::publish(int rank, const Action &action, int64_t end) {
  if (action.kind == ActionKind::BackwardWeight)
    return;
  bool backward = action.kind != ActionKind::Forward;
  int stage = schedule.stageOf(rank, action);
  available[indexOf({backward, stage}, action.microbatch)] = end;
  int consumer = backward ? stage - 1 : stage + 1;
  if (consumer >= 0 && consumer < schedule.placement.numStages())
    runnable.push_back(schedule.placement.rankOf(consumer));
}

bool ScheduleProgress::finished() const {
  for (size_t rank = 0; rank < positions.size(); ++rank)
    if (positions[rank] < schedule.ranks[rank].size())
      return false;
  return true;
}

ScheduleProgress::Wait ScheduleProgress::waitOf(int rank) const {
  const std::vector<Action> &actions = schedule.ranks[rank];
  for (size_t position = positions[rank], end = blockEnd(actions, position); position < end; ++position) {
    NeededOutputs inputs = inputsOf(schedule, rank, actions[position]);
    for (int i = 0; i < inputs.count; ++i)
      if (available[indexOf(inputs.outputs[i], actions[position].microbatch)] == kNotYet)
        return {actions[position], inputs.outputs[i]};
  }
  return {}; // the rank did not stop
}
