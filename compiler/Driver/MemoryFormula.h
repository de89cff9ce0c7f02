//===- MemoryFormula.h - Bytes of a training step, by formulas
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// The formulas of docs/memory.md, which names their sources. test/Execution/memory_formula.py has the same ones, and a
// test holds both equal. Nothing here looks at a plan.
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_DRIVER_MEMORYFORMULA_H
#define BOWLINE_COMPILER_DRIVER_MEMORYFORMULA_H

#include "passes/Stages/Schedules/ScheduleChoice.h"

#include <cstdint>
#include <string>
#include <vector>

namespace bowline {

/// The sizes of a model whose layers are those of Llama: SwiGLU, norms without means, keys that several heads may
/// share, a head that is not the embedding.
struct LayeredShape {
  int64_t hidden = 0;     ///< h
  int64_t inner = 0;      ///< f, of the MLP
  int64_t queries = 0;    ///< elements of a token's queries, h for most models
  int64_t keys = 0;       ///< k, elements of a token's keys, and of its values
  int64_t vocabulary = 0; ///< v
  int64_t layers = 0;     ///< of the whole model

  /// Parameters of the embedding; the head has as many.
  int64_t table() const { return vocabulary * hidden; }
  /// Parameters of one layer's matrices.
  int64_t matrices() const { return 2 * hidden * (queries + keys) + 3 * hidden * inner; }
};

/// The part of the model on a rank along the axis of the pipeline.
struct RankPart {
  int64_t layers = 0;
  bool hasEmbedding = false, hasHead = false;
};

/// The values that the backward pass computes again.
enum class RecomputeLevel { None, Selective, Full };

/// The choices that decide, with the shape, how many bytes a rank needs.
struct MemoryStrategy {
  int64_t tensor = 1;    ///< T, ranks along the axis of tensor parallelism
  int64_t stages = 1;    ///< p, ranks along the axis of the pipeline
  int64_t zeroRanks = 1; ///< n, ranks that ZeRO divides among
  ScheduleChoice schedule = {};
  int64_t microbatches = 1; ///< m
  bool isSequenceParallel = false;
  int64_t zero = 0; ///< level
  int64_t prefetch = 1;
  RecomputeLevel recompute = RecomputeLevel::None;
  bool isBf16 = false;
  int64_t tokens = 0;               ///< t, of a microbatch on one rank
  std::vector<RankPart> parts = {}; ///< of each rank along the pipeline; empty: layers are divided evenly

  /// V, chunks of a rank. Where there are no stages, 1.
  int64_t chunks() const { return stages > 1 ? schedule.chunks : 1; }
  /// w, bytes of an element that products compute with.
  int64_t width() const { return isBf16 ? 2 : 4; }
};

/// The parameters of the formulas for one compilation.
struct MemoryInputs {
  LayeredShape shape;
  MemoryStrategy strategy;
  std::string zeroAxis; ///< empty where ZeRO divides nothing
};

/// Whether docs/memory.md has a formula for the number of microbatches that a schedule keeps.
bool hasFormula(ScheduleKind kind);

/// The bytes that a rank needs at one time, by their contents.
struct MemoryRows {
  int64_t weightsAndMoments = 0;
  int64_t gradients = 0;              ///< kept until the update
  int64_t activations = 0;            ///< kept for the backward pass
  int64_t recomputed = 0;             ///< values of layers that are computed again
  int64_t copies = 0;                 ///< in bf16, from the forward pass to the backward pass
  int64_t gathered = 0;               ///< matrices, with ZeRO 3
  int64_t logits = 0;                 ///< and their gradients
  int64_t gradientsOfActivations = 0; ///< of one layer
  int64_t passingGradients = 0;       ///< of parameters: the one that is computed, and those that wait

  int64_t sum() const;
};

/// The formulas of one rank along the axis of the pipeline.
class RankFormula {
public:
  /// \p rank is less than the strategy's stages. Its schedule has a formula.
  RankFormula(const LayeredShape &shape, const MemoryStrategy &strategy, int64_t rank);

  /// P: parameters before ZeRO divides them.
  int64_t parameters() const;
  /// Parameters of which products read copies in bf16.
  int64_t rounded() const;

  int64_t weightsAndMoments() const;
  int64_t copies() const;
  /// All of the rank's, as they are kept until the update.
  int64_t gradients() const;
  /// Pairs of a chunk and a microbatch whose activations are kept at one time, at most.
  int64_t inFlight() const;

  /// The bytes that are needed where the last backward pass begins, and where it ends.
  MemoryRows atBegin() const;
  MemoryRows atEnd() const;
  /// The larger of both.
  MemoryRows atPeak() const;
  bool isPeakAtBegin() const { return atBegin().sum() >= atEnd().sum(); }

private:
  struct Activations {
    double kept = 0, again = 0;
  };

  double layerActivations(RecomputeLevel recompute) const;
  Activations activations() const;
  /// The rows of a layer in the backward pass; \p largest is the largest gradient that waits to be scattered.
  MemoryRows layerRows(int64_t largest) const;
  /// The rows of the loss, which are none where there is no head.
  MemoryRows lossRows() const;

  const LayeredShape &shape;
  const MemoryStrategy &strategy;
  int64_t rank;
  RankPart part;
  int64_t stream;         ///< s
  int64_t table;          ///< elements of the embedding or the head
  int64_t largestOfLayer; ///< elements of a matrix of the MLP
};

/// The number of the rank that needs the most; of equal ones the first.
int64_t largestRank(const LayeredShape &shape, const MemoryStrategy &strategy);
/// Bytes of that rank.
int64_t predictedBytes(const LayeredShape &shape, const MemoryStrategy &strategy);

} // namespace bowline

#endif // BOWLINE_COMPILER_DRIVER_MEMORYFORMULA_H
