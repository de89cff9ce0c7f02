//===- ArenaPackerTest.cpp - Blocks alive together have places of their own
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Analysis/ArenaPacker.h"
#include "test/Unit/Interp/OpHarness.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <map>

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

/// Values that each are computed from the one before: two of them are alive at a time.
TEST(ArenaPacker, ChainsAreExact) {
  Random random;
  SCOPED_TRACE(random.trace());
  for (int i = 0; i < kInstances && !testing::Test::HasFailure(); ++i) {
    std::vector<MemoryBlock> blocks(random.integer(2, 200));
    int64_t largest = 0;
    for (size_t position = 0; position < blocks.size(); ++position) {
      blocks[position] = {randomBytes(random), {static_cast<int64_t>(position), static_cast<int64_t>(position) + 1}};
      if (position > 0)
        largest = std::max(largest, blocks[position].bytes + blocks[position - 1].bytes);
    }
    expectExact(random, blocks, largest);
  }
}

/// Forward values that live until the backward pass comes back to them, gradients that live to the end, and short-lived
/// values in between: the shape of a training step, of random sizes.
TEST(ArenaPacker, TrainingStepsAreNearTheBound) {
  Random random;
  SCOPED_TRACE(random.trace());
  constexpr int kSteps = 20;
  double sum = 0;
  for (int i = 0; i < kSteps && !testing::Test::HasFailure(); ++i) {
    int64_t layers = random.integer(1, 12), kinds = random.integer(1, 4);
    int64_t middle = layers * kinds, end = 2 * middle + 1;
    std::vector<int64_t> kept, gradients;
    for (int64_t kind = 0; kind < kinds; ++kind) {
      kept.push_back(randomBytes(random));
      gradients.push_back(randomBytes(random));
    }
    std::vector<MemoryBlock> blocks;
    for (int64_t at = 0; at < middle; ++at) {
      int64_t backward = end - 1 - at;
      blocks.push_back({kept[at % kinds], {at, backward}});
      blocks.push_back({gradients[at % kinds], {backward, end}});
      blocks.push_back({randomBytes(random), {at, at + 1}});
      blocks.push_back({randomBytes(random), {backward, backward + 1}});
    }
    PackedArena arena = packArena(blocks);
    expectValid(blocks, arena);
    sum += static_cast<double>(arena.bytes) / static_cast<double>(arena.lowerBound);
  }
  EXPECT_LE(sum / kSteps, 1.03);
}

/// The bound itself cannot always be reached, so that one instance says little, and their mean much.
TEST(ArenaPacker, RandomBlocksAreNearTheBoundOnAverage) {
  Random random;
  SCOPED_TRACE(random.trace());
  double sum = 0;
  int counted = 0;
  for (int i = 0; i < kInstances; ++i) {
    std::vector<MemoryBlock> blocks = randomBlocks(random);
    if (blocks.empty())
      continue;
    PackedArena arena = packArena(blocks);
    sum += static_cast<double>(arena.bytes) / static_cast<double>(arena.lowerBound);
    ++counted;
  }
  EXPECT_LE(sum / counted, 1.02);
}

/// More blocks than all orders could be tried for.
TEST(ArenaPacker, ManyBlocksAreStillPlaced) {
  Random random;
  SCOPED_TRACE(random.trace());
  std::vector<MemoryBlock> blocks(30'000);
  for (MemoryBlock &block : blocks) {
    block.bytes = randomBytes(random);
    block.alive.first = random.integer(0, 30'000);
    block.alive.last = random.integer(block.alive.first, 30'000);
  }
  PackedArena arena = packArena(blocks);
  EXPECT_LE(static_cast<double>(arena.bytes), 1.1 * static_cast<double>(arena.lowerBound));
  // In the order of time, each new block against those that are still alive, by offset.
  std::vector<const MemoryBlock *> order;
  for (const MemoryBlock &block : blocks)
    order.push_back(&block);
  std::sort(order.begin(), order.end(), [](auto *lhs, auto *rhs) { return lhs->alive.first < rhs->alive.first; });
  std::map<int64_t, const MemoryBlock *> live;
  for (const MemoryBlock *block : order) {
    auto next = live.lower_bound(block->offset);
    if (next != live.begin() && std::prev(next)->second->alive.last < block->alive.first)
      next = live.erase(std::prev(next));
    while (next != live.end() && next->first < block->offset + block->bytes) {
      ASSERT_LT(next->second->alive.last, block->alive.first) << "two blocks at " << next->first;
      next = live.erase(next);
    }
    if (next != live.begin()) {
      const MemoryBlock *below = std::prev(next)->second;
      ASSERT_LE(below->offset + below->bytes, block->offset) << "two blocks at " << block->offset;
    }
    live[block->offset] = block;
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
