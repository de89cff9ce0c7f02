//===- ZeroBubble.cpp - ZB-H1, ZB-H2 and ZB-V: weight gradients fill the bubble
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Stages/Schedules/Generators.h"

#include <algorithm>
#include <array>
#include <utility>

using namespace bowline;

namespace {

/// Builds the order of one rank; each kind on each chunk takes the microbatches in turn.
class RankOrder {
public:
  RankOrder(int chunks, int microbatches) : counts(chunks) {
    actions.reserve(static_cast<size_t>(chunks) * microbatches * 3);
  }

  void add(ActionKind kind, int chunk, int times = 1) {
    for (int i = 0; i < times; ++i)
      actions.push_back({kind, false, static_cast<uint16_t>(chunk), counts[chunk][static_cast<size_t>(kind)]++});
  }

  /// How many were added.
  int count(ActionKind kind, int chunk) const { return counts[chunk][static_cast<size_t>(kind)]; }

  std::vector<Action> take() { return std::move(actions); }

private:
  std::vector<std::array<int, 4>> counts;
  std::vector<Action> actions;
};

} // namespace

/// `warmup(rank)` forwards, then backwards and forwards in turn. Weight gradients wait until `limit` activations are
/// held or no forward is left.
template <typename Warmup> static Schedule makeHandcrafted(int ranks, int microbatches, int limit, Warmup warmup) {
  Schedule schedule{Placement::roundRobin(ranks, 1), microbatches, {}};
  for (int rank = 0; rank < ranks; ++rank) {
    RankOrder order(/*chunks=*/1, microbatches);
    auto count = [&](ActionKind kind) { return order.count(kind, 0); };
    order.add(ActionKind::Forward, 0, std::min(microbatches, warmup(rank)));
    while (count(ActionKind::BackwardWeight) < microbatches) {
      bool forwardsLeft = count(ActionKind::Forward) < microbatches;
      if (count(ActionKind::BackwardInput) < microbatches)
        order.add(ActionKind::BackwardInput, 0);
      if (!forwardsLeft || count(ActionKind::Forward) - count(ActionKind::BackwardWeight) >= limit)
        order.add(ActionKind::BackwardWeight, 0);
      if (forwardsLeft)
        order.add(ActionKind::Forward, 0);
    }
    schedule.ranks.push_back(order.take());
  }
  return schedule;
}

absl::StatusOr<Schedule> bowline::makeZbH1(int ranks, int microbatches) {
  if (absl::Status status = verifyScheduleSize(ranks, microbatches, 1); !status.ok())
    return status;
  return makeHandcrafted(ranks, microbatches, ranks, [&](int rank) { return ranks - rank; });
}

absl::StatusOr<Schedule> bowline::makeZbH2(int ranks, int microbatches) {
  if (absl::Status status = verifyScheduleSize(ranks, microbatches, 1); !status.ok())
    return status;
  return makeHandcrafted(ranks, microbatches, 2 * ranks - 1, [&](int rank) { return 2 * (ranks - rank) - 1; });
}

/// The order of one rank for at least 2P - 1 microbatches: with fewer the phases below do not all exist.
static RankOrder makeZbVOrder(int rank, int ranks, int microbatches) {
  constexpr int kDown = 0, kUp = 1; // the chunks, by the direction in which activations go
  RankOrder order(/*chunks=*/2, microbatches);
  auto backwardBothParts = [&](int chunk) {
    order.add(ActionKind::BackwardInput, chunk);
    order.add(ActionKind::BackwardWeight, chunk);
  };

  // The rank does forwards until the first microbatch is back at it, then until that has reached rank 0 and the loss,
  // and then its backwards.
  order.add(ActionKind::Forward, kDown, 2 * (ranks - rank) - 1);
  for (int i = 0; i < rank; ++i) {
    order.add(ActionKind::Forward, kUp);
    order.add(ActionKind::Forward, kDown);
  }
  for (int i = 0; i < ranks - rank; ++i) {
    order.add(ActionKind::Forward, kUp);
    backwardBothParts(kUp);
  }
  // Steady: one forward for each backward, in each chunk. Forwards of the chunk down end first.
  while (order.count(ActionKind::Forward, kUp) < microbatches) {
    if (order.count(ActionKind::Forward, kDown) < microbatches)
      order.add(ActionKind::Forward, kDown);
    backwardBothParts(kDown);
    order.add(ActionKind::Forward, kUp);
    backwardBothParts(kUp);
  }
  // Gradients that other ranks wait for come first; weight gradients fill the remaining time.
  for (int i = 0; i < rank; ++i) {
    order.add(ActionKind::BackwardInput, kDown);
    order.add(ActionKind::BackwardInput, kUp);
  }
  for (int i = 0; i < ranks - rank; ++i)
    backwardBothParts(kDown);
  for (int chunk : {kUp, kDown})
    order.add(ActionKind::BackwardWeight, chunk, microbatches - order.count(ActionKind::BackwardWeight, chunk));
  return order;
}

/// With fewer microbatches than fill the pipeline the order is that of a full one, without the missing microbatches.
static int plannedInZbV(int ranks, int microbatches) { return std::max(microbatches, 2 * ranks - 1); }

absl::Status bowline::verifyZbV(int ranks, int microbatches) {
  if (absl::Status status = verifyScheduleSize(ranks, microbatches, 2); !status.ok())
    return status;
  return verifyScheduleSize(ranks, plannedInZbV(ranks, microbatches), 2);
}

absl::StatusOr<Schedule> bowline::makeZbV(int ranks, int microbatches) {
  if (absl::Status status = verifyZbV(ranks, microbatches); !status.ok())
    return status;
  int planned = plannedInZbV(ranks, microbatches);
  Schedule schedule{Placement::vShape(ranks), microbatches, {}};
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<Action> actions = makeZbVOrder(rank, ranks, planned).take();
    std::erase_if(actions, [&](const Action &action) { return action.microbatch >= microbatches; });
    schedule.ranks.push_back(std::move(actions));
  }
  return schedule;
}
