//===- MemoryFormula.h - Bytes of a training step, by formulas
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Implements the formulas of docs/memory.md, which names their sources. test/Execution/memory_formula.py implements
// them too, and a test compares both. No code here reads a plan.
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_COMPILER_DRIVER_MEMORYFORMULA_H
#define BOWLINE_COMPILER_DRIVER_MEMORYFORMULA_H

#include "passes/Stages/Schedules/ScheduleChoice.h"

#include <cstdint>
#include <string>
#include <vector>

namespace bowline {

/// The sizes of a model with the layers of Llama: SwiGLU, norms without means, keys shared by groups of heads, and a
/// head that is separate from the embedding.
struct LayeredShape {
  int64_t hidden = 0;     ///< h
  int64_t inner = 0;      ///< f, inner size of the MLP
  int64_t queries = 0;    ///< elements of one token's queries; h for most models
  int64_t keys = 0;       ///< k, elements of one token's keys, and also of its values
  int64_t vocabulary = 0; ///< v
  int64_t layers = 0;     ///< layers of the whole model

  /// Elements of the embedding, and also of the head.
  int64_t table() const { return vocabulary * hidden; }
  /// Elements of all matrices of one layer.
  int64_t matrices() const { return 2 * hidden * (queries + keys) + 3 * hidden * inner; }
};

/// The part of the model that a rank holds, given its coordinate along the pipeline axis.
struct RankPart {
  int64_t layers = 0;
  bool hasEmbedding = false, hasHead = false;
};

/// How many values the backward pass recomputes.
enum class RecomputeLevel { None, Selective, Full };

/// The choices that, with the shape, determine the memory of a rank.
struct MemoryStrategy {
  int64_t tensor = 1;    ///< T, ranks along the axis of tensor parallelism
  int64_t stages = 1;    ///< p, ranks along the pipeline axis
  int64_t zeroRanks = 1; ///< n, ranks among which ZeRO divides states
  ScheduleChoice schedule = {};
  int64_t microbatches = 1; ///< m, microbatches of a step
  bool isSequenceParallel = false;
  int64_t zero = 0; ///< level of ZeRO, 0 to 3
  int64_t prefetch = 1;
  bool gathersOnce = false; ///< with level 3, once for all microbatches of a pass
  RecomputeLevel recompute = RecomputeLevel::None;
  bool isBf16 = false;
  int64_t tokens = 0;               ///< t, tokens of one microbatch on one rank
  std::vector<RankPart> parts = {}; ///< for each rank along the pipeline; empty: layers are divided evenly

  /// V, the number of chunks per rank; 1 without a pipeline.
  int64_t chunks() const { return stages > 1 ? schedule.chunks : 1; }
  /// w, bytes per element of the operands of products.
  int64_t width() const { return isBf16 ? 2 : 4; }
};

/// The inputs of the formulas for one compilation.
struct MemoryInputs {
  LayeredShape shape;
  MemoryStrategy strategy;
  std::string zeroAxis; ///< mesh axis along which ZeRO divides; empty if none
};

/// Returns whether docs/memory.md has a formula for the microbatches in flight with this schedule.
bool hasFormula(ScheduleKind kind);

/// The bytes that a rank needs at one moment, by content.
struct MemoryRows {
  int64_t weightsAndMoments = 0;
  int64_t gradients = 0;              ///< gradients kept until the update
  int64_t activations = 0;            ///< activations kept for the backward pass
  int64_t recomputed = 0;             ///< activations that the backward pass has recomputed
  int64_t copies = 0;                 ///< bf16 copies of weights, kept from the forward to the backward pass
  int64_t gathered = 0;               ///< matrices, or whole parameters, gathered with ZeRO 3
  int64_t logits = 0;                 ///< logits and their gradients
  int64_t gradientsOfActivations = 0; ///< gradients of activations of one layer
  int64_t passingGradients = 0;       ///< gradients of parameters: the current one, and those that wait for a reduction

  int64_t sum() const;
};

/// The formulas for the rank at one coordinate along the pipeline axis.
class RankFormula {
public:
  /// \p rank is that coordinate, below strategy.stages. The strategy's schedule must have a formula (hasFormula).
  RankFormula(const LayeredShape &shape, const MemoryStrategy &strategy, int64_t rank);

  /// P: elements of the rank's parameters before ZeRO divides them.
  int64_t parameters() const;
  /// Elements of parameters of which products read bf16 copies.
  int64_t rounded() const;

  int64_t weightsAndMoments() const;
  int64_t copies() const;
  /// Bytes of all gradients of the rank, in the form kept until the update.
  int64_t gradients() const;
  /// The most pairs of chunk and microbatch whose activations are live at one time.
  int64_t inFlight() const;

  /// The bytes needed when the last backward pass begins, and when it ends.
  MemoryRows atBegin() const;
  MemoryRows atEnd() const;
  /// The one of these two with the larger sum.
  MemoryRows atPeak() const;
  bool isPeakAtBegin() const { return atBegin().sum() >= atEnd().sum(); }

private:
  struct Activations {
    double kept = 0, again = 0;
  };

  double layerActivations(RecomputeLevel recompute) const;
  Activations activations() const;
  /// The rows while the backward pass runs one layer; \p largest is the largest gradient that waits to be scattered.
  MemoryRows layerRows(int64_t largest) const;
  /// The rows while the loss is computed; zeros on a rank without the head.
  MemoryRows lossRows() const;
  /// The bytes of whole parameters that all microbatches of a pass share.
  int64_t gatheredOnce() const;

  const LayeredShape &shape;
  const MemoryStrategy &strategy;
  int64_t rank;
  RankPart part;
  int64_t stream;         ///< s, elements of the residual stream of one microbatch
  int64_t table;          ///< elements of the embedding or the head
  int64_t largestOfLayer; ///< elements of one matrix of the MLP
};

/// Returns the coordinate along the pipeline of the rank that needs the most memory, the first of equal ones.
int64_t largestRank(const LayeredShape &shape, const MemoryStrategy &strategy);
/// Returns the bytes that this rank needs at its peak.
int64_t predictedBytes(const LayeredShape &shape, const MemoryStrategy &strategy);

} // namespace bowline

#endif // BOWLINE_COMPILER_DRIVER_MEMORYFORMULA_H
