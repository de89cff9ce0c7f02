//===- ShrinkModel.cpp - The structure of a model with small sizes
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Driver/ShrinkModel.h"

#include "frontends/hf/Family.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>

using namespace bowline;

static constexpr int64_t kHeadDim = 2, kIntermediate = 5, kVocabulary = 7, kSeq = 4;

/// The smallest size from `least` up to `size` that `parts` divides if it divides `size`, and else does not.
static int64_t shrunk(int64_t size, int64_t parts, int64_t least) {
  for (int64_t smaller = least; smaller < size; ++smaller)
    if ((smaller % parts == 0) == (size % parts == 0))
      return smaller;
  return size;
}

static void shrinkHeads(hf::ModelConfig &config, int64_t tensorRanks) {
  auto alike = [&](int64_t a, int64_t b) {
    return (a % tensorRanks == 0) == (b % tensorRanks == 0) && (tensorRanks % a == 0) == (tensorRanks % b == 0) &&
           (a < tensorRanks) == (b < tensorRanks);
  };
  int64_t ratio = config.heads / config.kvHeads;
  for (int64_t keys = 1; keys <= config.kvHeads; ++keys)
    for (int64_t queries = std::min<int64_t>(ratio, 2); queries <= ratio; ++queries)
      if (alike(keys, config.kvHeads) && alike(keys * queries, config.heads)) {
        config.kvHeads = keys;
        config.heads = keys * queries;
        return;
      }
}

int64_t bowline::batchRanksOf(const Strategy &strategy) {
  int64_t ranks = 1;
  for (const std::string &axis : strategy.batchAxes)
    ranks *= strategy.getSize(axis);
  return ranks;
}

Strategy bowline::shrinkStrategy(const Strategy &strategy) {
  Strategy small = strategy;
  for (Strategy::Axis &axis : small.mesh) {
    bool divides = axis.name == strategy.zeroAxis || llvm::is_contained(strategy.batchAxes, axis.name);
    bool dividesMore =
        axis.name == strategy.tensorAxis || axis.name == strategy.stageAxis || axis.name == strategy.sequenceAxis;
    if (divides && !dividesMore && strategy.patterns.empty() && axis.size > 3)
      axis.size = axis.size % 2 == 0 ? 2 : 3;
  }
  return small;
}

int64_t bowline::shrinkBatch(int64_t batch, int64_t many, int64_t few) {
  if (many == few)
    return batch;
  if (batch % many == 0)
    return few;
  return batch > few ? few + 1 : 1;
}

SizedModel bowline::shrinkModel(const SizedModel &model, const Strategy &strategy) {
  SizedModel small = model;
  hf::ModelConfig &config = small.config;
  int64_t tensorRanks = strategy.getSize(strategy.tensorAxis), stageRanks = strategy.getSize(strategy.stageAxis);

  bool isSquare = config.hidden == config.heads * config.headDim;
  shrinkHeads(config, tensorRanks);
  config.headDim = kHeadDim;
  int64_t width = config.heads * config.headDim;
  config.hidden = isSquare ? width : shrunk(config.hidden, tensorRanks, width + 1);
  config.intermediate = shrunk(config.intermediate, tensorRanks, std::min(kIntermediate, config.intermediate));
  config.vocabulary = shrunk(config.vocabulary, tensorRanks, std::min(kVocabulary, config.vocabulary));

  int64_t sequenceRanks = strategy.getSize(strategy.sequenceAxis);
  small.seq = shrunk(model.seq, sequenceRanks, std::min(kSeq, model.seq));
  config.maxPositions = model.seq == model.config.maxPositions ? small.seq : small.seq + 1;
  if (config.architecture && small.seq < model.seq)
    if (auto shortened = config.architecture->shortened(model.seq, small.seq))
      config.architecture = std::move(shortened);
  small.batch = shrunk(model.batch, batchRanksOf(strategy), 1);

  bool isTable = strategy.schedule && strategy.schedule->kind == ScheduleKind::Table;
  bool counts = !strategy.stages.empty() || !strategy.patterns.empty();
  bool isV = strategy.schedule &&
             (strategy.schedule->kind == ScheduleKind::ZbV || strategy.schedule->kind == ScheduleKind::DualPipeV);
  int64_t chunks = strategy.schedule ? std::max(strategy.schedule->chunks, isV ? 2 : 1) : 1;
  int64_t stages = stageRanks * chunks;
  if (!isTable && !counts)
    config.layers = shrunk(config.layers, stages, std::min(config.layers, std::max<int64_t>(stages, 2)));
  if (!isTable)
    small.microbatches = shrunk(model.microbatches, stageRanks, std::min(model.microbatches, 2 * stageRanks));
  return small;
}

hf::ServeSizes bowline::shrinkServeSizes(const hf::ServeSizes &sizes, int64_t context) {
  constexpr int64_t kTokens = 4, kSequences = 3, kBlockTokens = 2;
  hf::ServeSizes small = sizes;
  small.buckets.clear();
  for (int64_t bucket : sizes.buckets)
    if (int64_t fewer = std::min(bucket, kTokens); small.buckets.empty() || small.buckets.back() < fewer)
      small.buckets.push_back(fewer);
  small.sequences = std::min(sizes.sequences, kSequences);
  small.context = context;
  small.blockTokens = std::min(sizes.blockTokens, kBlockTokens);
  small.blocks = small.sequences * small.listed() + 1;
  return small;
}
