//===- Generators.cpp - GPipe, 1F1B and their forms with several chunks
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Stages/Schedules/Generators.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <algorithm>

using namespace bowline;

absl::Status bowline::verifyScheduleSize(int ranks, int microbatches, int chunks) {
  auto atLeastOne = [](const char *what, int number) {
    return absl::InvalidArgumentError(absl::StrCat("a pipeline schedule needs at least 1 ", what, ", not ", number));
  };
  if (ranks < 1)
    return atLeastOne("rank", ranks);
  if (microbatches < 1)
    return atLeastOne("microbatch", microbatches);
  if (chunks < 1)
    return atLeastOne("chunk per rank", chunks);
  if (chunks > UINT16_MAX)
    return absl::InvalidArgumentError(
        absl::StrCat(chunks, " chunks per rank are more than a schedule can number; at most ", UINT16_MAX));
  // Divided rather than multiplied: no overflow.
  if (microbatches > kMaxScheduledForwards / ranks / chunks)
    return absl::InvalidArgumentError(absl::StrCat(ranks, " ranks with ", chunks, " chunks and ", microbatches,
                                                   " microbatches are more than ", kMaxScheduledForwards,
                                                   " forwards a step; use fewer microbatches"));
  return absl::OkStatus();
}

/// A schedule with no actions yet, each rank with room for `perForward` actions per chunk and microbatch.
static Schedule emptySchedule(Placement placement, int microbatches, int perForward) {
  Schedule schedule{std::move(placement), microbatches, {}};
  schedule.ranks.resize(schedule.placement.numRanks());
  for (std::vector<Action> &actions : schedule.ranks)
    actions.reserve(static_cast<size_t>(microbatches) * schedule.placement.numChunks() * perForward);
  return schedule;
}

absl::StatusOr<Schedule> bowline::makeGPipe(int ranks, int microbatches) {
  return makeBreadthFirst(ranks, microbatches, /*chunks=*/1);
}

absl::StatusOr<Schedule> bowline::makeBreadthFirst(int ranks, int microbatches, int chunks) {
  if (absl::Status status = verifyScheduleSize(ranks, microbatches, chunks); !status.ok())
    return status;
  Schedule schedule = emptySchedule(Placement::roundRobin(ranks, chunks), microbatches, 2);
  for (std::vector<Action> &actions : schedule.ranks) {
    for (int chunk = 0; chunk < chunks; ++chunk)
      for (int microbatch = 0; microbatch < microbatches; ++microbatch)
        actions.push_back({ActionKind::Forward, false, static_cast<uint16_t>(chunk), microbatch});
    for (int chunk = chunks - 1; chunk >= 0; --chunk)
      for (int microbatch = 0; microbatch < microbatches; ++microbatch)
        actions.push_back({ActionKind::Backward, false, static_cast<uint16_t>(chunk), microbatch});
  }
  return schedule;
}

absl::StatusOr<Schedule> bowline::make1F1B(int ranks, int microbatches) {
  if (absl::Status status = verifyScheduleSize(ranks, microbatches, 1); !status.ok())
    return status;
  Schedule schedule = emptySchedule(Placement::roundRobin(ranks, 1), microbatches, 2);
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<Action> &actions = schedule.ranks[rank];
    int warmup = std::min(microbatches, ranks - 1 - rank);
    for (int forward = 0; forward < warmup; ++forward)
      actions.push_back({ActionKind::Forward, false, 0, forward});
    for (int backward = 0; backward < microbatches; ++backward) {
      if (warmup + backward < microbatches)
        actions.push_back({ActionKind::Forward, false, 0, warmup + backward});
      actions.push_back({ActionKind::Backward, false, 0, backward});
    }
  }
  return schedule;
}

absl::Status bowline::verifyInterleaved(int ranks, int microbatches, int chunks) {
  if (absl::Status status = verifyScheduleSize(ranks, microbatches, chunks); !status.ok())
    return status;
  if (microbatches % ranks != 0)
    return absl::InvalidArgumentError(absl::StrCat("schedule interleaved needs a multiple of ", ranks,
                                                   " microbatches (the pipeline's ranks), not ", microbatches));
  return absl::OkStatus();
}

absl::StatusOr<Schedule> bowline::makeInterleaved(int ranks, int microbatches, int chunks) {
  if (absl::Status status = verifyScheduleSize(ranks, microbatches, chunks); !status.ok())
    return status;
  if (absl::Status status = verifyInterleaved(ranks, microbatches, chunks); !status.ok()) {
    int below = microbatches / ranks * ranks;
    std::vector<int> nearest;
    for (int64_t count : {int64_t{below}, int64_t{below} + ranks})
      if (count <= kMaxScheduledForwards && verifyInterleaved(ranks, static_cast<int>(count), chunks).ok())
        nearest.push_back(static_cast<int>(count));
    return absl::InvalidArgumentError(
        absl::StrCat(status.message(), nearest.empty() ? "" : "; the nearest is ", absl::StrJoin(nearest, " or "),
                     nearest.empty() ? "; use breadth_first:" : ", or use breadth_first:", chunks));
  }
  Schedule schedule = emptySchedule(Placement::roundRobin(ranks, chunks), microbatches, 2);
  // The n-th forward and the n-th backward of a rank: P microbatches per chunk, then the next chunk.
  int64_t round = int64_t{ranks} * chunks;
  auto chunkOf = [&](int64_t n) { return static_cast<int>(n / ranks % chunks); };
  auto microbatchOf = [&](int64_t n) { return static_cast<int32_t>(n / round * ranks + n % ranks); };
  int64_t total = int64_t{microbatches} * chunks;
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<Action> &actions = schedule.ranks[rank];
    auto forward = [&](int64_t n) {
      actions.push_back({ActionKind::Forward, false, static_cast<uint16_t>(chunkOf(n)), microbatchOf(n)});
    };
    int64_t warmup = std::min(total, int64_t{2} * (ranks - 1 - rank) + int64_t{chunks - 1} * ranks);
    for (int64_t n = 0; n < warmup; ++n)
      forward(n);
    for (int64_t n = 0; n < total; ++n) {
      if (warmup + n < total)
        forward(warmup + n);
      actions.push_back({ActionKind::Backward, false, static_cast<uint16_t>(chunks - 1 - chunkOf(n)), microbatchOf(n)});
    }
  }
  return schedule;
}
