//===- PublishedFigures.cpp - Figures of the schedules in the papers
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Stages/Schedules/PublishedFigures.h"

#include <algorithm>

using namespace bowline;

std::optional<PublishedFigures> bowline::findPublishedFigures(const ScheduleChoice &choice, int ranks, int microbatches,
                                                              const ScheduleCosts &costs) {
  if (costs.stages.size() != 1 || costs.transfer != 0)
    return std::nullopt;
  int64_t f = costs.stages[0].forward, i = costs.stages[0].backwardInput, w = costs.stages[0].backwardWeight;
  int64_t b = costs.stages[0].of(ActionKind::Backward);
  int64_t overlapped = costs.overlapped.value_or(f + b);
  int64_t others = ranks - 1;
  int chunks = choice.chunks;
  bool isEven = f == i && i == w && b == i + w;

  PublishedFigures figures;
  figures.activations.resize(ranks);
  auto holdEach = [&](int64_t activations) {
    std::fill(figures.activations.begin(), figures.activations.end(), static_cast<int>(activations));
  };
  switch (choice.kind) {
  case ScheduleKind::GPipe:
    figures.bubble = others * (f + b);
    holdEach(microbatches);
    return figures;
  case ScheduleKind::OneForwardOneBackward:
    figures.bubble = others * (f + b);
    for (int rank = 0; rank < ranks; ++rank)
      figures.activations[rank] = std::min(microbatches, ranks - rank);
    return figures;
  case ScheduleKind::Interleaved:
    figures.bubble = others * (f + b);
    for (int rank = 0; rank < ranks; ++rank)
      figures.activations[rank] = std::min(microbatches * chunks, ranks * chunks + ranks - 1 - 2 * rank);
    return figures;
  case ScheduleKind::BreadthFirst:
    figures.bubble = (others + int64_t{chunks - 1} * std::max(0, ranks - microbatches)) * (f + b);
    holdEach(int64_t{microbatches} * chunks);
    return figures;
  case ScheduleKind::ZbH1:
    if (f != w || i < f || microbatches < ranks)
      return std::nullopt;
    figures.bubble = others * (f + i - w);
    holdEach(ranks);
    return figures;
  case ScheduleKind::ZbH2:
    if (f != w || i < f || microbatches < 2 * ranks - 1)
      return std::nullopt;
    figures.bubble = others * (f + i - 2 * w);
    figures.isInner = true;
    holdEach(2 * ranks - 1);
    return figures;
  case ScheduleKind::ZbV:
    if (!isEven || microbatches < 2 * ranks - 1)
      return std::nullopt;
    figures.isInner = true;
    holdEach(2 * ranks);
    return figures;
  case ScheduleKind::DualPipeV:
    if (!isEven || overlapped > f + b || microbatches < 2 * ranks)
      return std::nullopt;
    figures.bubble = others * (overlapped + b - 3 * w);
    holdEach(2 * ranks + 1);
    return figures;
  case ScheduleKind::Table:
    break;
  }
  return std::nullopt;
}
