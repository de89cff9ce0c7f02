//===- ShrinkModel.h - The structure of a model with small sizes
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_DRIVER_SHRINKMODEL_H
#define BOWLINE_COMPILER_DRIVER_SHRINKMODEL_H

#include "frontends/hf/ModelConfig.h"
#include "frontends/hf/PagedCache.h"
#include "passes/Strategy/Strategy.h"

namespace bowline {

/// A model with the sizes of its batch.
struct SizedModel {
  hf::ModelConfig config;
  int64_t batch = 1; // sequences of a microbatch
  int64_t seq = 1;
  int64_t microbatches = 1;
};

/// The strategy on fewer ranks: axes along which batch and states alone are divided keep 2 of more than 3 ranks, or 3
/// if their number is odd. With patterns, which may name any axis, it stays as it is.
Strategy shrinkStrategy(const Strategy &strategy);

/// A batch of as few sequences as possible that divides among `few` ranks if `batch` divides among `many`, and else
/// does not.
int64_t shrinkBatch(int64_t batch, int64_t many, int64_t few);

/// Ranks among which the batch is divided.
int64_t batchRanksOf(const Strategy &strategy);

/// The smallest sizes with which the model takes the same way through the compiler under that strategy, which stays as
/// it is. Kept are: the family and everything in its configuration that is no size; whether key heads are shared, and
/// how they and all heads divide among the ranks of tensor parallelism; whether these divide the feed-forward part, the
/// vocabulary, the hidden size and, under sequence parallelism, the sequence; whether the batch divides; whether layers
/// divide among stages, and microbatches among ranks of the pipeline. Lengths that only the family knows follow the
/// sequence (hf::Architecture::shortened). Layers and microbatches stay as they are where
/// the strategy counts them: where it lists stages or patterns, or has a table as schedule.
SizedModel shrinkModel(const SizedModel &model, const Strategy &strategy);

/// Room for a few sequences of at most `context` tokens, in blocks of which these need several: a step of one token, if
/// there is such a one, and a step of more.
hf::ServeSizes shrinkServeSizes(const hf::ServeSizes &sizes, int64_t context);

} // namespace bowline

#endif // BOWLINE_COMPILER_DRIVER_SHRINKMODEL_H
