//===- ArenaPacker.cpp - Offsets for blocks of memory with lifetimes
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Memory/ArenaPacker.h"

#include <algorithm>
#include <map>
#include <numeric>

using namespace bowline;

static int64_t peakOfLiveBytes(const std::vector<MemoryBlock> &blocks) {
  std::map<int64_t, int64_t> changes;
  for (const MemoryBlock &block : blocks) {
    changes[block.alive.first] += block.bytes;
    changes[block.alive.last + 1] -= block.bytes;
  }
  int64_t live = 0, peak = 0;
  for (auto [position, change] : changes)
    peak = std::max(peak, live += change);
  return peak;
}

PackedArena bowline::packArena(std::vector<MemoryBlock> &blocks) {
  std::vector<size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t lhs, size_t rhs) {
    if (blocks[lhs].bytes != blocks[rhs].bytes)
      return blocks[lhs].bytes > blocks[rhs].bytes;
    return blocks[lhs].alive.first < blocks[rhs].alive.first;
  });

  PackedArena result;
  std::vector<const MemoryBlock *> placed; // by offset
  for (size_t index : order) {
    MemoryBlock &block = blocks[index];
    int64_t offset = 0;
    for (const MemoryBlock *other : placed) {
      if (!other->alive.overlaps(block.alive))
        continue;
      if (offset + block.bytes <= other->offset)
        break;
      offset = std::max(offset, other->offset + other->bytes);
    }
    block.offset = offset;
    auto position = std::upper_bound(placed.begin(), placed.end(), offset,
                                     [](int64_t value, const MemoryBlock *other) { return value < other->offset; });
    placed.insert(position, &block);
    result.bytes = std::max(result.bytes, offset + block.bytes);
  }
  result.lowerBound = peakOfLiveBytes(blocks);
  return result;
}
