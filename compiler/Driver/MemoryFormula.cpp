//===- MemoryFormula.cpp - Bytes of a training step, by formulas
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Driver/MemoryFormula.h"
#include "llvm/Support/ErrorHandling.h"

#include <algorithm>
#include <cmath>

using namespace bowline;

bool bowline::hasFormula(ScheduleKind kind) {
  switch (kind) {
  case ScheduleKind::GPipe:
  case ScheduleKind::OneForwardOneBackward:
  case ScheduleKind::Interleaved:
  case ScheduleKind::BreadthFirst:
  case ScheduleKind::ZbH1:
    return true;
  case ScheduleKind::ZbH2:
  case ScheduleKind::ZbV:
  case ScheduleKind::DualPipeV:
  case ScheduleKind::Table:
    return false;
  }
  llvm_unreachable("schedules are those of the list");
}

int64_t MemoryRows::sum() const {
  return weightsAndMoments + gradients + activations + recomputed + copies + gathered + logits +
         gradientsOfActivations + passingGradients;
}

/// The parts of ranks whose stages have the same number of layers, but for one layer.
static RankPart evenPart(const LayeredShape &shape, const MemoryStrategy &strategy, int64_t rank) {
  const int64_t stages = strategy.stages * strategy.chunks();
  RankPart part{.layers = 0, .hasEmbedding = rank == 0, .hasHead = rank == strategy.stages - 1};
  for (int64_t stage = rank; stage < stages; stage += strategy.stages)
    part.layers += shape.layers * (stage + 1) / stages - shape.layers * stage / stages;
  return part;
}

RankFormula::RankFormula(const LayeredShape &shape, const MemoryStrategy &strategy, int64_t rank)
    : shape(shape), strategy(strategy), rank(rank),
      part(strategy.parts.empty() ? evenPart(shape, strategy, rank) : strategy.parts[rank]),
      stream(strategy.tokens * shape.hidden / (strategy.isSequenceParallel ? strategy.tensor : 1)),
      table(shape.table() / strategy.tensor), largestOfLayer(shape.hidden * shape.inner / strategy.tensor) {}

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

int64_t RankFormula::rounded() const {
  return part.layers * shape.matrices() / strategy.tensor + (part.hasHead ? table : 0);
}

int64_t RankFormula::parameters() const {
  return rounded() + (part.hasEmbedding ? table : 0) + 2 * part.layers * shape.hidden;
}

// Rajbhandari et al. 2020 (ZeRO), section 3.1; passes/Local/README.md for bf16.
int64_t RankFormula::weightsAndMoments() const {
  const int64_t all = parameters(), ranks = strategy.zeroRanks;
  if (strategy.zero == 0)
    return 12 * all;
  if (strategy.zero == 3)
    return 12 * all / ranks;
  if (!strategy.isBf16)
    return 4 * all + 8 * all / ranks;
  return 2 * rounded() + 4 * (all - rounded()) + 12 * all / ranks;
}

// With ZeRO the copies are those held or gathered; stages of a pipeline round a matrix when they use it.
int64_t RankFormula::copies() const {
  return strategy.isBf16 && strategy.zero == 0 && strategy.stages == 1 ? 2 * rounded() : 0;
}

// Rajbhandari et al. 2020, section 5.
int64_t RankFormula::gradients() const {
  const bool isDivided = strategy.zero >= 2 || (strategy.zero == 1 && strategy.microbatches == 1);
  const int64_t whole = strategy.gathersOnce ? 4 * parameters() : 0; // as microbatches add them up
  return 4 * parameters() / (isDivided ? strategy.zeroRanks : 1) + whole;
}

// Stages have a copy for forward and one for backward passes.
int64_t RankFormula::gatheredOnce() const {
  return strategy.gathersOnce ? (strategy.stages > 1 ? 2 : 1) * strategy.width() * parameters() : 0;
}

//===----------------------------------------------------------------------===//
// Activations
//===----------------------------------------------------------------------===//

// Huang et al. 2019 (GPipe), Lamy-Poirier 2023 (breadth-first), Narayanan et al. 2021 (1F1B), Qi et al. 2023 (ZB-H1),
// Korthikanti et al. 2022, section 4.2.3 (interleaved).
int64_t RankFormula::inFlight() const {
  const int64_t stages = strategy.stages, chunks = strategy.chunks(), batches = strategy.microbatches;
  if (stages == 1)
    return 1;
  switch (strategy.schedule.kind) {
  case ScheduleKind::GPipe:
    return batches;
  case ScheduleKind::BreadthFirst:
    return batches * chunks;
  case ScheduleKind::OneForwardOneBackward:
    return std::min(batches, stages - rank);
  case ScheduleKind::ZbH1:
    return std::min(batches, stages);
  case ScheduleKind::Interleaved:
    return std::min(batches * chunks, stages * chunks + stages - 1 - 2 * rank);
  case ScheduleKind::ZbH2:
  case ScheduleKind::ZbV:
  case ScheduleKind::DualPipeV:
  case ScheduleKind::Table:
    break;
  }
  llvm_unreachable("hasFormula was asked");
}

// Korthikanti et al. 2022, section 4, for SwiGLU and attention that stores no probabilities.
double RankFormula::layerActivations(RecomputeLevel recompute) const {
  const double tokens = static_cast<double>(strategy.tokens) / static_cast<double>(strategy.tensor);
  const auto width = static_cast<double>(strategy.width()), residual = static_cast<double>(stream);
  const auto inner = static_cast<double>(shape.inner);
  const double always =
      8 * residual +
      width * tokens * (2 * static_cast<double>(shape.queries) + 2 * static_cast<double>(shape.keys) + 2 * inner);
  return recompute == RecomputeLevel::None ? always + width * (2 * residual + tokens * inner) : always;
}

// Chen et al. 2016 for recomputation of all.
RankFormula::Activations RankFormula::activations() const {
  const double chunk = static_cast<double>(part.layers) / static_cast<double>(strategy.chunks());
  const auto count = static_cast<double>(inFlight());
  if (strategy.recompute != RecomputeLevel::Full)
    return {.kept = count * chunk * layerActivations(strategy.recompute)};
  Activations least;
  for (int64_t distance = 1; distance <= std::max<int64_t>(1, std::llround(std::ceil(chunk / 2))); ++distance) {
    const auto layers = static_cast<double>(distance);
    const Activations choice{.kept = count * std::ceil(chunk / layers) * 4 * static_cast<double>(stream),
                             .again = layers * layerActivations(RecomputeLevel::None)};
    if (distance == 1 || choice.kept + choice.again < least.kept + least.again)
      least = choice;
  }
  return least;
}

//===----------------------------------------------------------------------===//
// Passing values
//===----------------------------------------------------------------------===//

MemoryRows RankFormula::layerRows(int64_t largest) const {
  MemoryRows rows;
  rows.recomputed = std::llround(activations().again);
  rows.gradientsOfActivations = 8 * stream + 3 * strategy.width() * (strategy.tokens * shape.inner / strategy.tensor);
  // Rajbhandari et al. 2020, section 7.
  if (strategy.zero == 3 && !strategy.gathersOnce)
    rows.gathered = strategy.width() * (shape.matrices() / strategy.tensor + strategy.prefetch * largestOfLayer);
  // The bound of SegmentSchedule.h.
  const bool nothingWaits =
      strategy.zero == 0 || (strategy.zero == 1 && strategy.microbatches > 1) || strategy.gathersOnce;
  const int64_t waiting = nothingWaits ? 0 : (strategy.zero == 3 ? 1 : 2) * largest;
  rows.passingGradients = 4 * (waiting + largestOfLayer);
  return rows;
}

// See passes/Fusion/README.md for the tiles.
MemoryRows RankFormula::lossRows() const {
  MemoryRows rows;
  if (!part.hasHead)
    return rows;
  if (strategy.zero == 3 && !strategy.gathersOnce)
    rows.gathered = strategy.width() * table;
  rows.passingGradients = 4 * table * (strategy.isBf16 ? 1 : 3); // in f32 also those of two tiles
  if (strategy.isBf16)
    rows.logits = 6 * strategy.tokens * shape.vocabulary / strategy.tensor;
  return rows;
}

MemoryRows RankFormula::atBegin() const {
  const bool hasTable = part.hasEmbedding || part.hasHead;
  const MemoryRows layer = layerRows(std::max(hasTable ? table : 0, largestOfLayer)), loss = lossRows();
  MemoryRows rows = layer.sum() >= loss.sum() ? layer : loss;
  rows.weightsAndMoments = weightsAndMoments();
  rows.activations = std::llround(activations().kept);
  rows.copies = copies();
  rows.gathered += gatheredOnce();
  if (strategy.microbatches > 1)
    rows.gradients = gradients();
  return rows;
}

MemoryRows RankFormula::atEnd() const {
  MemoryRows rows = layerRows(largestOfLayer);
  if (strategy.microbatches > 1) { // others are in flight
    MemoryRows embedding;
    embedding.passingGradients = part.hasEmbedding ? 4 * table : 0;
    if (embedding.sum() > rows.sum())
      rows = embedding;
    rows.activations = std::llround(activations().kept);
    rows.copies = copies();
  }
  rows.weightsAndMoments = weightsAndMoments();
  rows.gathered += gatheredOnce();
  rows.gradients = gradients();
  return rows;
}

MemoryRows RankFormula::atPeak() const { return isPeakAtBegin() ? atBegin() : atEnd(); }

int64_t bowline::largestRank(const LayeredShape &shape, const MemoryStrategy &strategy) {
  int64_t largest = 0, most = 0;
  for (int64_t rank = 0; rank < strategy.stages; ++rank) {
    const int64_t bytes = RankFormula(shape, strategy, rank).atPeak().sum();
    if (bytes > most) {
      most = bytes;
      largest = rank;
    }
  }
  return largest;
}

int64_t bowline::predictedBytes(const LayeredShape &shape, const MemoryStrategy &strategy) {
  return RankFormula(shape, strategy, largestRank(shape, strategy)).atPeak().sum();
}
