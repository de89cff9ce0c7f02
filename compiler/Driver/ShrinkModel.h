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

/// A model with the sizes of one training step.
struct SizedModel {
  hf::ModelConfig config;
  int64_t batch = 1; // sequences of a microbatch
  int64_t seq = 1;
  int64_t microbatches = 1;
};

/// Returns the strategy on fewer ranks. Axes that divide only batch and states shrink from more than 3 ranks to 2, or
/// to 3 if their number is odd. A strategy with patterns, which may name any axis, stays unchanged.
Strategy shrinkStrategy(const Strategy &strategy);

/// Returns the smallest batch that is divisible by `few` if `batch` is divisible by
/// `many`, and not divisible otherwise.
int64_t shrinkBatch(int64_t batch, int64_t many, int64_t few);

/// Returns the number of ranks among which the strategy divides the batch.
int64_t batchRanksOf(const Strategy &strategy);

/// Returns the smallest sizes with which the model takes the same path through the compiler under the same
/// strategy. It keeps the family, all configuration other than sizes, and whether heads share keys. It keeps
/// whether key heads and heads divide among ranks of tensor parallelism, and likewise the MLP, vocabulary, hidden
/// size and, if sequence-parallel, the sequence. It keeps whether the batch, layers and microbatches divide among
/// their ranks. Lengths in the configuration follow the sequence (hf::Architecture::shortened). Layers and
/// microbatches keep their numbers where the strategy counts them: where it lists stages or patterns, or has a
/// table as schedule.
SizedModel shrinkModel(const SizedModel &model, const Strategy &strategy);

/// Returns sizes for a few sequences of at most `context` tokens that span several cache blocks. There is a step of one
/// token, if `sizes` have one, and a larger step.
hf::ServeSizes shrinkServeSizes(const hf::ServeSizes &sizes, int64_t context);

} // namespace bowline

#endif // BOWLINE_COMPILER_DRIVER_SHRINKMODEL_H
