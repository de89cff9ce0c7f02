//===- DualPipeV.cpp - DualPipe cut in half: two chunks per rank, forwards overlap backwards
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Stages/Schedules/Generators.h"

#include "absl/strings/str_cat.h"

#include <array>
#include <deque>

using namespace bowline;

namespace {

constexpr int kDown = 0, kUp = 1; // the chunks, by the direction in which activations go

/// The order of one rank. Other than in ZB-V weight gradients that were split off wait in one queue for both chunks,
/// and their microbatches need not be in turn with those of full backwards.
class DualPipeVOrder {
public:
  explicit DualPipeVOrder(int microbatches) { actions.reserve(static_cast<size_t>(microbatches) * 6); }

  void forward(int chunk, bool overlapsNext = false) {
    actions.push_back({ActionKind::Forward, overlapsNext, static_cast<uint16_t>(chunk), forwards[chunk]++});
  }
  void backward(int chunk) {
    actions.push_back({ActionKind::Backward, false, static_cast<uint16_t>(chunk), backwards[chunk]++});
  }
  void backwardInput(int chunk) {
    int microbatch = backwards[chunk]++;
    actions.push_back({ActionKind::BackwardInput, false, static_cast<uint16_t>(chunk), microbatch});
    pending.push_back({ActionKind::BackwardWeight, false, static_cast<uint16_t>(chunk), microbatch});
  }
  /// The oldest one that waits.
  void backwardWeight() {
    if (pending.empty())
      return;
    actions.push_back(pending.front());
    pending.pop_front();
  }
  void overlapped(int forwardChunk, int backwardChunk) {
    forward(forwardChunk, /*overlapsNext=*/true);
    backward(backwardChunk);
  }
  std::vector<Action> finish() {
    while (!pending.empty())
      backwardWeight();
    return std::move(actions);
  }

private:
  std::vector<Action> actions;
  std::array<int, 2> forwards = {}, backwards = {};
  std::deque<Action> pending;
};

} // namespace

static std::vector<Action> makeOrder(int rank, int ranks, int microbatches) {
  int behind = ranks - 1 - rank; // ranks between this one and the turn of the V
  DualPipeVOrder order(microbatches);

  // Warmup: down only, then both ways, then the first backwards come back up.
  for (int i = 0; i < 2 * behind; ++i)
    order.forward(kDown);
  for (int i = 0; i < rank + 1; ++i) {
    order.forward(kDown);
    order.forward(kUp);
  }
  for (int i = 0; i < behind; ++i) {
    order.backwardInput(kUp);
    order.backwardWeight();
    order.forward(kUp);
  }

  // Steady: each forward overlaps the backward of the other chunk.
  for (int i = 0; i < microbatches - 2 * ranks + rank + 1; ++i) {
    if (i == 0 && behind == 0) {
      // At the turn of the V the backward waits for this rank alone. Without overlap it starts earlier, and its result
      // is sent earlier.
      order.forward(kDown);
      order.backward(kUp);
    } else {
      order.overlapped(kDown, kUp);
    }
    order.overlapped(kUp, kDown);
  }

  // Cooldown: no forwards down any more, then none at all. The second half of the last backwards is split: odd ranks
  // begin with the chunk up.
  for (int i = 0; i < behind; ++i) {
    order.backward(kUp);
    order.overlapped(kUp, kDown);
  }
  int splitFrom = (rank + 1) / 2;
  bool upFirst = rank % 2 == 1;
  auto lastBackward = [&](int chunk, bool split) { split ? order.backwardInput(chunk) : order.backward(chunk); };
  for (int i = 0; i < rank + 1; ++i) {
    lastBackward(kUp, upFirst ? i >= splitFrom : i > splitFrom);
    lastBackward(kDown, i >= splitFrom);
  }
  for (int i = 0; i < behind; ++i) {
    order.backwardWeight();
    order.backwardInput(kDown);
  }
  return order.finish();
}

absl::Status bowline::verifyDualPipeV(int ranks, int microbatches) {
  if (absl::Status status = verifyScheduleSize(ranks, microbatches, 2); !status.ok())
    return status;
  if (microbatches < 2 * ranks)
    return absl::InvalidArgumentError(absl::StrCat("schedule dualpipe_v needs at least ", 2 * ranks,
                                                   " microbatches (two per rank of the pipeline), not ", microbatches));
  return absl::OkStatus();
}

absl::StatusOr<Schedule> bowline::makeDualPipeV(int ranks, int microbatches) {
  if (absl::Status status = verifyScheduleSize(ranks, microbatches, 2); !status.ok())
    return status;
  if (absl::Status status = verifyDualPipeV(ranks, microbatches); !status.ok()) {
    bool hasMore = verifyDualPipeV(ranks, 2 * ranks).ok();
    bool isOtherValid = verifyZbV(ranks, microbatches).ok();
    return absl::InvalidArgumentError(
        absl::StrCat(status.message(), hasMore ? absl::StrCat("; use ", 2 * ranks, " or more") : "",
                     isOtherValid ? (hasMore ? ", or schedule zb_v" : "; use schedule zb_v") : ""));
  }
  Schedule schedule{Placement::vShape(ranks), microbatches, {}};
  for (int rank = 0; rank < ranks; ++rank)
    schedule.ranks.push_back(makeOrder(rank, ranks, microbatches));
  return schedule;
}
