//===- Schedule.cpp - In which order the ranks of a pipeline work
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Stages/Schedules/Schedule.h"

#include "absl/strings/str_cat.h"

#include <utility>

using namespace bowline;

char bowline::letterOf(ActionKind kind) {
  switch (kind) {
  case ActionKind::Forward:
    return 'F';
  case ActionKind::Backward:
    return 'B';
  case ActionKind::BackwardInput:
    return 'I';
  case ActionKind::BackwardWeight:
    return 'W';
  }
  return '?';
}

Placement::Placement(std::vector<std::vector<int>> stagesOfRanks) : stages(std::move(stagesOfRanks)) {
  owners.resize(static_cast<size_t>(numRanks()) * numChunks());
  for (int rank = 0; rank < numRanks(); ++rank)
    for (int chunk = 0; chunk < numChunks(); ++chunk)
      owners[stages[rank][chunk]] = {rank, chunk};
}

Placement Placement::roundRobin(int ranks, int chunks) {
  std::vector<std::vector<int>> stages(ranks);
  for (int rank = 0; rank < ranks; ++rank)
    for (int chunk = 0; chunk < chunks; ++chunk)
      stages[rank].push_back(chunk * ranks + rank);
  return Placement(std::move(stages));
}

Placement Placement::vShape(int ranks) {
  std::vector<std::vector<int>> stages(ranks);
  for (int rank = 0; rank < ranks; ++rank)
    stages[rank] = {rank, 2 * ranks - 1 - rank};
  return Placement(std::move(stages));
}

absl::Status Placement::verify(const std::vector<std::vector<int>> &stages) {
  size_t numChunks = stages.empty() ? 0 : stages[0].size();
  if (numChunks == 0)
    return absl::InvalidArgumentError("there must be at least one rank, with at least one stage");
  constexpr int kNobody = -1;
  std::vector<int> owner(stages.size() * numChunks, kNobody);
  for (size_t rank = 0; rank < stages.size(); ++rank) {
    if (stages[rank].size() != numChunks)
      return absl::InvalidArgumentError(absl::StrCat("rank ", rank, " holds ", stages[rank].size(),
                                                     " stages and rank 0 holds ", numChunks,
                                                     "; all ranks must hold equally many"));
    for (int stage : stages[rank]) {
      if (stage < 0 || static_cast<size_t>(stage) >= owner.size())
        return absl::InvalidArgumentError(absl::StrCat("rank ", rank, " holds stage ", stage, ", but there are ",
                                                       owner.size(), " stages, counted from 0: ", stages.size(),
                                                       " ranks with ", numChunks, " each"));
      if (owner[stage] != kNobody)
        return absl::InvalidArgumentError(
            absl::StrCat("stage ", stage, " is on rank ", owner[stage], " and on rank ", rank));
      owner[stage] = static_cast<int>(rank);
    }
  }
  return absl::OkStatus();
}

std::string bowline::describe(const Schedule &schedule, int rank, const Action &action) {
  return absl::StrCat(std::string(1, letterOf(action.kind)), action.microbatch, " of stage ",
                      schedule.stageOf(rank, action));
}
