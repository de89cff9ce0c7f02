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

/// A block of memory that must hold its content during an interval.
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
/// The packer tries several orders of the blocks: by time, by size (Pisarchyk and Lee, 2020, "greedy by size"), by size
/// times lifetime, by lifetime. In each order it places every block into a gap between blocks alive at the same time.
/// It then improves the best packing: blocks that end above the lower bound move to the front of the order (Joslin and
/// Clements, 1999, "squeaky wheel optimization"). It stops at the lower bound, or at a work limit of about a second.
/// With very many blocks only the order by time is certain to be tried, in O(n log n).
PackedArena packArena(std::vector<MemoryBlock> &blocks);

} // namespace bowline

#endif // BOWLINE_PASSES_ANALYSIS_ARENAPACKER_H
