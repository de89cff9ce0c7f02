//===- MemoryOffers.h - Changes that save time and take memory
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_HOISTING_MEMORYOFFERS_H
#define BOWLINE_PASSES_HOISTING_MEMORYOFFERS_H

#include "passes/Hoisting/WeightPacking.h"
#include "llvm/ADT/BitVector.h"

#include <vector>

namespace bowline {

/// A command that hoist-into-prepare or hoist-invariants may move, or a weight that pack-weights may pack.
struct MemoryOffer {
  double seconds = 0;               // of a step, by the cost model
  int64_t bytes = 0;                // of the results that stay alive
  bool isPacking = false;           // else a command that moves
  std::vector<size_t> launches;     // the command or the products, by their position in the module
  std::vector<size_t> neededOffers; // those that compute values from which this one computes its own

  /// Seconds per byte; infinite where no bytes are taken.
  double worth() const;
};

/// The offers of the hoisting passes to a module, in the order in which memory should go to them: falling seconds per
/// byte, but none before one that it needs.
class MemoryOffers {
public:
  MemoryOffers(mlir::ModuleOp module, const ModuleTarget &target, const targets::CostModel &model,
               PackingThresholds least);

  llvm::ArrayRef<MemoryOffer> offers() const { return sorted; }

  /// Marks the launches of all offers that are not `taken`, in the module or a copy of it, so that passes leave them
  /// out. Removes other marks.
  void decline(mlir::ModuleOp module, const llvm::BitVector &taken) const;

  /// Makes the changes of all offers that are `taken` in a copy of the module, as the passes do.
  void apply(mlir::ModuleOp copy, const llvm::BitVector &taken) const;

private:
  void sort(std::vector<MemoryOffer> found);

  ModuleTarget target;
  PackingThresholds least;
  std::vector<MemoryOffer> sorted;
};

/// Chooses offers such that the arena has at most `limit` bytes after `bytesOf`, which returns the bytes of the arena
/// with the offers that are taken. Takes as many offers as have room, in their order; leaves out the first one that has
/// none and goes on behind it, at most `most` times. None if even without any offer the arena is larger.
std::optional<llvm::BitVector> chooseWithin(int64_t limit, size_t count, int most,
                                            llvm::function_ref<int64_t(const llvm::BitVector &taken)> bytesOf);

} // namespace bowline

#endif // BOWLINE_PASSES_HOISTING_MEMORYOFFERS_H
