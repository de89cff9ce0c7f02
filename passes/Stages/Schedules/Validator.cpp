//===- Validator.cpp - Proves that a schedule is complete and cannot hang
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Stages/Schedules/Validator.h"
#include "passes/Stages/Schedules/ScheduleProgress.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include <map>
#include <tuple>
#include <utility>

using namespace bowline;

static absl::Status refuse(int rank, size_t position, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("rank ", rank, ", action ", position, ": ", what));
}

static absl::Status validateForm(const Schedule &schedule) {
  int numChunks = schedule.placement.numChunks();
  if (schedule.ranks.size() != static_cast<size_t>(schedule.placement.numRanks()))
    return absl::InvalidArgumentError(absl::StrCat("the schedule has ", schedule.ranks.size(), " ranks, its placement ",
                                                   schedule.placement.numRanks()));
  if (numChunks < 1 || schedule.numMicrobatches < 1)
    return absl::InvalidArgumentError("a schedule needs at least 1 rank, 1 stage per rank and 1 microbatch");
  for (size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    const std::vector<Action> &actions = schedule.ranks[rank];
    for (size_t position = 0; position < actions.size(); ++position) {
      const Action &action = actions[position];
      if (action.chunk >= numChunks)
        return refuse(rank, position, absl::StrCat("chunk ", action.chunk, " does not exist; ranks hold ", numChunks));
      if (action.microbatch < 0 || action.microbatch >= schedule.numMicrobatches)
        return refuse(rank, position,
                      absl::StrCat("microbatch ", action.microbatch, " does not exist; the step has ",
                                   schedule.numMicrobatches, ", counted from 0"));
      if (!action.overlapsNext)
        continue;
      if (position + 1 == actions.size() || actions[position + 1].overlapsNext)
        return refuse(rank, position, "overlaps the next action, which is not there or in a block of its own");
      ActionKind first = action.kind, second = actions[position + 1].kind;
      if (!(first == ActionKind::Forward && isBackward(second)) &&
          !(isBackward(first) && second == ActionKind::Forward))
        return refuse(rank, position, "overlaps the next action; only a forward and a backward (B or I) may overlap");
    }
  }
  return absl::OkStatus();
}

/// Each action once. Three marks per chunk and microbatch: F, the input's gradient, the weights' gradient.
static absl::Status validateCompleteness(const Schedule &schedule, int rank) {
  constexpr size_t kAbsent = SIZE_MAX;
  constexpr size_t kMarks = 3;
  const std::vector<Action> &actions = schedule.ranks[rank];
  size_t pairs = static_cast<size_t>(schedule.placement.numChunks()) * schedule.numMicrobatches;
  std::vector<size_t> found(pairs * kMarks, kAbsent);
  for (size_t position = 0; position < actions.size(); ++position) {
    const Action &action = actions[position];
    size_t base = (static_cast<size_t>(action.chunk) * schedule.numMicrobatches + action.microbatch) * kMarks;
    bool parts[kMarks] = {action.kind == ActionKind::Forward, isBackward(action.kind),
                          action.kind == ActionKind::Backward || action.kind == ActionKind::BackwardWeight};
    for (size_t part = 0; part < kMarks; ++part) {
      if (!parts[part])
        continue;
      if (found[base + part] != kAbsent) {
        size_t before = found[base + part];
        return refuse(rank, position,
                      absl::StrCat(describe(schedule, rank, action), " was done already by action ", before, ", ",
                                   describe(schedule, rank, actions[before])));
      }
      found[base + part] = position;
    }
  }
  for (size_t mark = 0; mark < found.size(); ++mark) {
    if (found[mark] != kAbsent)
      continue;
    constexpr const char *kMissing[kMarks] = {"F", "B (or I)", "W (or B)"};
    size_t pair = mark / kMarks;
    int stage = schedule.placement.stageOf(rank, static_cast<int>(pair / schedule.numMicrobatches));
    return absl::InvalidArgumentError(absl::StrCat("rank ", rank, ": ", kMissing[mark % kMarks], " of microbatch ",
                                                   pair % schedule.numMicrobatches, " on stage ", stage,
                                                   " is missing"));
  }
  return absl::OkStatus();
}

/// The position of the action that makes the output. There must be one.
static size_t findProducer(const Schedule &schedule, NeededOutput output, int microbatch) {
  int rank = schedule.placement.rankOf(output.stage);
  const std::vector<Action> &actions = schedule.ranks[rank];
  size_t position = 0;
  for (; position < actions.size(); ++position) {
    const Action &action = actions[position];
    bool isKind = output.backward ? isBackward(action.kind) : action.kind == ActionKind::Forward;
    if (isKind && action.microbatch == microbatch && schedule.stageOf(rank, action) == output.stage)
      break;
  }
  return position;
}

/// One sentence on the output that the rank waits for. The rank that it waits for goes to `next`.
static std::string describeWait(const Schedule &schedule, const ScheduleProgress &progress, int rank, int &next) {
  ScheduleProgress::Wait wait = progress.waitOf(rank);
  next = schedule.placement.rankOf(wait.needed.stage);
  size_t producer = findProducer(schedule, wait.needed, wait.action.microbatch);
  std::string where = next == rank ? "the same rank" : absl::StrCat("rank ", next);
  return absl::StrCat(
      "rank ", rank, ", action ", progress.positionOf(rank), ": ", describe(schedule, rank, wait.action), " waits for ",
      describe(schedule, next, schedule.ranks[next][producer]), ", which is action ", producer, " of ", where);
}

/// The ranks that wait for each other in a circle, from one that is in it.
static absl::Status describeDeadlock(const Schedule &schedule, const ScheduleProgress &progress) {
  int rank = 0;
  while (progress.positionOf(rank) == schedule.ranks[rank].size())
    ++rank;
  // Every rank that stopped waits for one that stopped: after as many steps as ranks this one is in the circle.
  for (int step = 0; step < schedule.placement.numRanks(); ++step)
    describeWait(schedule, progress, rank, rank);
  constexpr int kShown = 6;
  std::string message;
  int first = rank, length = 0;
  do {
    std::string wait = describeWait(schedule, progress, rank, rank);
    if (length++ < kShown)
      absl::StrAppend(&message, message.empty() ? "" : "; ", wait);
  } while (rank != first);
  if (length > kShown)
    absl::StrAppend(&message, "; and so on, ", length, " ranks in a circle");
  return absl::InvalidArgumentError(message);
}

/// The stream of gradients, or that of activations, from one rank to another.
using Channel = std::tuple<int, int, bool>;

/// A transfer by the stage that sends.
struct Transfer {
  int stage, microbatch;
  size_t position; // position of the action that sends, or consumes
  bool operator==(const Transfer &other) const { return stage == other.stage && microbatch == other.microbatch; }
};

static absl::Status validateChannels(const Schedule &schedule) {
  std::map<Channel, std::vector<Transfer>> sent, consumed;
  const Placement &placement = schedule.placement;
  for (int rank = 0; rank < placement.numRanks(); ++rank) {
    for (size_t position = 0; position < schedule.ranks[rank].size(); ++position) {
      const Action &action = schedule.ranks[rank][position];
      if (action.kind == ActionKind::BackwardWeight)
        continue;
      bool backward = action.kind != ActionKind::Forward;
      int stage = schedule.stageOf(rank, action);
      int to = backward ? stage - 1 : stage + 1, from = backward ? stage + 1 : stage - 1;
      auto isRemote = [&](int other) {
        return other >= 0 && other < placement.numStages() && placement.rankOf(other) != rank;
      };
      if (isRemote(to))
        sent[{rank, placement.rankOf(to), backward}].push_back({stage, action.microbatch, position});
      if (isRemote(from))
        consumed[{placement.rankOf(from), rank, backward}].push_back({from, action.microbatch, position});
    }
  }
  for (const auto &[channel, sends] : sent) {
    const std::vector<Transfer> &receives = consumed[channel];
    auto [sender, receiver, backward] = channel;
    for (size_t i = 0; i < sends.size(); ++i) {
      if (sends[i] == receives[i])
        continue;
      const char *what = backward ? "gradient" : "activation";
      return refuse(receiver, receives[i].position,
                    absl::StrCat("needs the ", what, " of microbatch ", receives[i].microbatch, " from stage ",
                                 receives[i].stage, ", but rank ", sender, " sends that of microbatch ",
                                 sends[i].microbatch, " from stage ", sends[i].stage, " first (its action ",
                                 sends[i].position, "); make both ranks take them in the same order"));
    }
  }
  return absl::OkStatus();
}

absl::Status bowline::validateSchedule(const Schedule &schedule) {
  if (absl::Status status = validateForm(schedule); !status.ok())
    return status;
  for (int rank = 0; rank < schedule.placement.numRanks(); ++rank)
    if (absl::Status status = validateCompleteness(schedule, rank); !status.ok())
      return status;
  ScheduleProgress progress(schedule, /*transfer=*/0, [](int, size_t, int64_t start) { return start + 1; });
  if (!progress.finished())
    return describeDeadlock(schedule, progress);
  return validateChannels(schedule);
}
