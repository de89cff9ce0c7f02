//===- ArenaPacker.h - Offsets for blocks of memory with lifetimes
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_MEMORY_ARENAPACKER_H
#define BOWLINE_PASSES_MEMORY_ARENAPACKER_H

#include "passes/Analysis/Lifetimes.h"

#include <cstdint>
#include <vector>

namespace bowline {

/// A block of memory that is needed during an interval.
struct MemoryBlock {
  int64_t bytes; // a multiple of the alignment
  Interval alive;
  int64_t offset = 0; // the answer
};

struct PackedArena {
  /// The end of the highest block.
  int64_t bytes = 0;
  /// The largest sum of blocks alive at one time: no packing is smaller.
  int64_t lowerBound = 0;
};

/// Places blocks so that no two that are alive at the same time overlap: largest first, each at the lowest offset that
/// fits (Pisarchyk and Lee, 2020, "greedy by size"). Deterministic.
PackedArena packArena(std::vector<MemoryBlock> &blocks);

} // namespace bowline

#endif // BOWLINE_PASSES_MEMORY_ARENAPACKER_H
