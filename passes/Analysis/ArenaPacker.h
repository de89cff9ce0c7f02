//===- ArenaPacker.h - Offsets for blocks of memory with lifetimes
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef BOWLINE_PASSES_ANALYSIS_ARENAPACKER_H
#define BOWLINE_PASSES_ANALYSIS_ARENAPACKER_H

#include "passes/Analysis/Lifetimes.h"

#include <cstdint>
#include <vector>

namespace bowline {

/// A block of memory that is needed during an interval.
struct MemoryBlock {
  int64_t bytes; // a multiple of the alignment
  Interval alive;
  int64_t offset = 0; // set by packArena
};

struct PackedArena {
  /// The end of the block that ends last.
  int64_t bytes = 0;
  /// The largest sum of blocks alive at one time: no packing is smaller.
  int64_t lowerBound = 0;
};

/// The largest sum of bytes alive at one time, and a position at which it is reached.
struct LivePeak {
  int64_t bytes = 0;
  int64_t position = 0;
};
LivePeak findLivePeak(const std::vector<MemoryBlock> &blocks);

/// Places blocks so that no two that are alive at the same time overlap. Deterministic: equal blocks get equal offsets.
///
/// Blocks are placed one after the other, each into a gap between those that are alive together with it, in several
/// orders: by time, by size (Pisarchyk and Lee, 2020, "greedy by size"), by size times lifetime, by lifetime. The best
/// one is then improved: blocks that end above the lower bound are placed earlier (Joslin and Clements, 1999, "squeaky
/// wheel optimization"). Improvement ends at the lower bound, or after an amount of work that keeps it near a second
/// whatever the number of blocks; with very many blocks only placing by time is sure to be done, in O(n log n).
PackedArena packArena(std::vector<MemoryBlock> &blocks);

} // namespace bowline

#endif // BOWLINE_PASSES_ANALYSIS_ARENAPACKER_H
