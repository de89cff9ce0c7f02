//===- Synchronous.cpp - Whether a schedule can run without streams of communication
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Stages/Schedules/ScheduleProgress.h"
#include "passes/Stages/Schedules/Validator.h"

#include "absl/strings/str_cat.h"

#include <utility>

using namespace bowline;

namespace {

/// Between two blocks, all ranks end the sends of the first and the receives of the second together.
class SynchronousRun {
public:
  explicit SynchronousRun(const Schedule &schedule);

  absl::Status run();

private:
  /// The place of an output in `makers` and `users`.
  size_t indexOf(NeededOutput output, int microbatch) const {
    return (size_t{2} * output.stage + output.backward) * schedule.numMicrobatches + microbatch;
  }
  /// The stage that consumes the output of a stage, or -1.
  int consumerOf(NeededOutput output) const {
    int consumer = output.backward ? output.stage - 1 : output.stage + 1;
    return consumer < schedule.placement.numStages() ? consumer : -1;
  }
  bool sendsAreReceived(int rank, std::string *reason) const;
  bool receivesAreSent(int rank, std::string *reason) const;
  /// Whether the rank can go from between two blocks to after the second one. If not, `reason` says why.
  bool canAdvance(int rank, std::string *reason = nullptr) const {
    return sendsAreReceived(rank, reason) && receivesAreSent(rank, reason);
  }
  /// Looks again at the ranks with the stages before and after the action's.
  void wakeNeighbours(int rank, size_t position);

  const Schedule &schedule;
  std::vector<size_t> positions;     // begin of the block that each rank starts next
  std::vector<size_t> previous;      // the block before it
  std::vector<size_t> makers, users; // first actions of the blocks that make an output, and use it on another rank
  std::vector<int> runnable;
};

} // namespace

SynchronousRun::SynchronousRun(const Schedule &schedule)
    : schedule(schedule), positions(schedule.ranks.size()), previous(schedule.ranks.size()),
      makers(size_t{2} * schedule.placement.numStages() * schedule.numMicrobatches), users(makers.size()) {
  for (int rank = 0; rank < schedule.placement.numRanks(); ++rank) {
    const std::vector<Action> &actions = schedule.ranks[rank];
    for (size_t begin = 0, end; begin < actions.size(); begin = end) {
      end = blockEnd(actions, begin);
      for (size_t position = begin; position < end; ++position) {
        const Action &action = actions[position];
        NeededOutputs inputs = inputsOf(schedule, rank, action);
        for (int i = 0; i < inputs.count; ++i)
          if (schedule.placement.rankOf(inputs.outputs[i].stage) != rank)
            users[indexOf(inputs.outputs[i], action.microbatch)] = begin;
        if (action.kind != ActionKind::BackwardWeight)
          makers[indexOf({action.kind != ActionKind::Forward, schedule.stageOf(rank, action)}, action.microbatch)] =
              begin;
      }
    }
    runnable.push_back(rank);
  }
}

bool SynchronousRun::sendsAreReceived(int rank, std::string *reason) const {
  for (size_t position = previous[rank]; position < positions[rank]; ++position) {
    const Action &action = schedule.ranks[rank][position];
    if (action.kind == ActionKind::BackwardWeight)
      continue;
    NeededOutput made = {action.kind != ActionKind::Forward, schedule.stageOf(rank, action)};
    int consumer = consumerOf(made);
    if (consumer < 0 || schedule.placement.rankOf(consumer) == rank)
      continue;
    int receiver = schedule.placement.rankOf(consumer);
    size_t user = users[indexOf(made, action.microbatch)];
    if (positions[receiver] >= user)
      continue;
    if (reason)
      *reason = absl::StrCat("after action ", position, " it sends the result of ", describe(schedule, rank, action),
                             ", which rank ", receiver, " receives before its action ", user,
                             ", but that rank is at action ", positions[receiver]);
    return false;
  }
  return true;
}

bool SynchronousRun::receivesAreSent(int rank, std::string *reason) const {
  const std::vector<Action> &actions = schedule.ranks[rank];
  if (positions[rank] == actions.size())
    return true;
  for (size_t position = positions[rank], end = blockEnd(actions, position); position < end; ++position) {
    NeededOutputs inputs = inputsOf(schedule, rank, actions[position]);
    for (int i = 0; i < inputs.count; ++i) {
      int sender = schedule.placement.rankOf(inputs.outputs[i].stage);
      size_t maker = makers[indexOf(inputs.outputs[i], actions[position].microbatch)];
      if (sender == rank || positions[sender] > maker)
        continue;
      if (reason)
        *reason = absl::StrCat("action ", position, ", ", describe(schedule, rank, actions[position]),
                               ", needs a value that rank ", sender, " makes in its action ", maker,
                               ", but that rank is at action ", positions[sender]);
      return false;
    }
  }
  return true;
}

void SynchronousRun::wakeNeighbours(int rank, size_t position) {
  const Action &action = schedule.ranks[rank][position];
  int stage = schedule.stageOf(rank, action);
  for (int neighbour : {stage - 1, stage + 1})
    if (neighbour >= 0 && neighbour < schedule.placement.numStages())
      runnable.push_back(schedule.placement.rankOf(neighbour));
}

absl::Status SynchronousRun::run() {
  while (!runnable.empty()) {
    int rank = runnable.back();
    runnable.pop_back();
    const std::vector<Action> &actions = schedule.ranks[rank];
    while (positions[rank] < actions.size() && canAdvance(rank)) {
      previous[rank] = positions[rank];
      positions[rank] = blockEnd(actions, positions[rank]);
      // Wakes the ranks that wait for an output of this one, and those that wait for this one to receive.
      for (size_t position = previous[rank]; position < positions[rank]; ++position)
        wakeNeighbours(rank, position);
      if (positions[rank] < actions.size())
        for (size_t position = positions[rank]; position < blockEnd(actions, positions[rank]); ++position)
          wakeNeighbours(rank, position);
    }
  }
  for (int rank = 0; rank < schedule.placement.numRanks(); ++rank) {
    std::string reason;
    if (!canAdvance(rank, &reason))
      return absl::FailedPreconditionError(absl::StrCat("without streams rank ", rank, " waits forever: ", reason));
  }
  return absl::OkStatus();
}

absl::Status bowline::validateWithoutStreams(const Schedule &schedule) { return SynchronousRun(schedule).run(); }
