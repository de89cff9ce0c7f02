//===- ArenaPackerTest.cpp - Blocks alive together have places of their own
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Memory/ArenaPacker.h"
#include "test/Unit/Interp/OpHarness.h"
#include "gtest/gtest.h"

#include <algorithm>

using namespace bowline;
using namespace bowline::test;

namespace {

constexpr int64_t kAlignment = 64;
constexpr int kInstances = 300;

int64_t randomBytes(Random &random) { return kAlignment * random.integer(1, 40); }

std::vector<MemoryBlock> randomBlocks(Random &random) {
  std::vector<MemoryBlock> blocks(random.integer(0, 40));
  int64_t positions = random.integer(1, 50);
  for (MemoryBlock &block : blocks) {
    block.bytes = randomBytes(random);
    block.alive.first = random.integer(0, positions);
    block.alive.last = random.integer(block.alive.first, positions);
  }
  return blocks;
}

/// The largest sum of bytes over the positions, counted at each one.
int64_t peak(const std::vector<MemoryBlock> &blocks) {
  int64_t largest = 0;
  for (const MemoryBlock &at : blocks) {
    int64_t sum = 0;
    for (const MemoryBlock &block : blocks)
      if (block.alive.first <= at.alive.first && at.alive.first <= block.alive.last)
        sum += block.bytes;
    largest = std::max(largest, sum);
  }
  return largest;
}

void expectValid(const std::vector<MemoryBlock> &blocks, const PackedArena &arena) {
  int64_t end = 0;
  for (const MemoryBlock &lhs : blocks) {
    EXPECT_GE(lhs.offset, 0);
    EXPECT_EQ(lhs.offset % kAlignment, 0);
    end = std::max(end, lhs.offset + lhs.bytes);
    for (const MemoryBlock &rhs : blocks) {
      bool together = std::max(lhs.alive.first, rhs.alive.first) <= std::min(lhs.alive.last, rhs.alive.last);
      bool apart = lhs.offset + lhs.bytes <= rhs.offset || rhs.offset + rhs.bytes <= lhs.offset;
      EXPECT_TRUE(&lhs == &rhs || !together || apart) << lhs.offset << " and " << rhs.offset;
    }
  }
  EXPECT_EQ(arena.bytes, end);
  EXPECT_EQ(arena.lowerBound, peak(blocks));
  EXPECT_GE(arena.bytes, arena.lowerBound);
}

/// Packs blocks whose best packing is the lower bound, in any order.
void expectExact(Random &random, std::vector<MemoryBlock> blocks, int64_t bytes) {
  std::vector<MemoryBlock> shuffled;
  for (int64_t index : random.permutation(blocks.size()))
    shuffled.push_back(blocks[index]);
  PackedArena arena = packArena(shuffled);
  expectValid(shuffled, arena);
  EXPECT_EQ(arena.bytes, bytes);
}

} // namespace

TEST(ArenaPacker, NothingTakesNothing) {
  std::vector<MemoryBlock> blocks;
  PackedArena arena = packArena(blocks);
  EXPECT_EQ(arena.bytes, 0);
  EXPECT_EQ(arena.lowerBound, 0);
}

TEST(ArenaPacker, BlocksAliveTogetherDoNotOverlap) {
  Random random;
  SCOPED_TRACE(random.trace());
  for (int i = 0; i < kInstances && !testing::Test::HasFailure(); ++i) {
    std::vector<MemoryBlock> blocks = randomBlocks(random);
    PackedArena arena = packArena(blocks);
    expectValid(blocks, arena);
  }
}

TEST(ArenaPacker, EqualInputsGetEqualOffsets) {
  Random random;
  SCOPED_TRACE(random.trace());
  for (int i = 0; i < kInstances && !testing::Test::HasFailure(); ++i) {
    std::vector<MemoryBlock> first = randomBlocks(random), second = first;
    // The old answer is no input.
    for (MemoryBlock &block : second)
      block.offset = randomBytes(random);
    packArena(first);
    packArena(second);
    for (size_t index = 0; index < first.size(); ++index)
      EXPECT_EQ(first[index].offset, second[index].offset);
  }
}

/// Values that each are computed from the one before: two of them are alive at a time. All have one size, or each is
/// larger than the one before, or smaller; of other chains, "greedy by size" is not always exact.
TEST(ArenaPacker, ChainsAreExact) {
  Random random;
  SCOPED_TRACE(random.trace());
  for (int i = 0; i < kInstances && !testing::Test::HasFailure(); ++i) {
    std::vector<int64_t> sizes(random.integer(2, 30), randomBytes(random));
    if (random.flip())
      for (size_t index = 1; index < sizes.size(); ++index)
        sizes[index] = sizes[index - 1] + randomBytes(random);
    int64_t largest = sizes.back() + sizes[sizes.size() - 2];
    if (random.flip())
      std::reverse(sizes.begin(), sizes.end());
    std::vector<MemoryBlock> blocks;
    for (int64_t position = 0; position < static_cast<int64_t>(sizes.size()); ++position)
      blocks.push_back({sizes[position], {position, position + 1}});
    expectExact(random, blocks, largest);
  }
}

TEST(ArenaPacker, BlocksOneAfterTheOtherShareOnePlace) {
  Random random;
  SCOPED_TRACE(random.trace());
  std::vector<MemoryBlock> blocks;
  int64_t largest = 0;
  for (int64_t position = 0; position < 20; ++position) {
    blocks.push_back({randomBytes(random), {2 * position, 2 * position + 1}});
    largest = std::max(largest, blocks.back().bytes);
  }
  expectExact(random, blocks, largest);
}

TEST(ArenaPacker, NestedBlocksTakeTheirSum) {
  Random random;
  SCOPED_TRACE(random.trace());
  std::vector<MemoryBlock> blocks;
  int64_t sum = 0;
  for (int64_t depth = 0; depth < 20; ++depth) {
    blocks.push_back({randomBytes(random), {depth, 40 - depth}});
    sum += blocks.back().bytes;
  }
  expectExact(random, blocks, sum);
}
