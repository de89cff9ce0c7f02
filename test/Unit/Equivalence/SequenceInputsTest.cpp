//===- SequenceInputsTest.cpp - Drawn inputs keep the promise about sequences
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Equivalence/SequenceInputs.h"
#include "gtest/gtest.h"

#include <map>

using namespace bowline;

namespace {
/// Counts of special cases in draws.
struct Seen {
  int64_t empty = 0, ofTheWholeStep = 0, withPast = 0, padded = 0, shared = 0;

  void add(const SequenceSizes &sizes, const DrawnSequences &drawn) {
    std::map<int32_t, int> readers;
    padded += drawn.rows.back() < sizes.tokens;
    for (int64_t i = 0; i < sizes.sequences; ++i) {
      int64_t rows = drawn.rows[i + 1] - drawn.rows[i];
      empty += rows == 0;
      ofTheWholeStep += rows == sizes.tokens;
      withPast += drawn.lengths[i] > rows;
      for (int64_t place = 0; rows > 0 && place * sizes.block_tokens < drawn.lengths[i]; ++place)
        shared += ++readers[drawn.blocks[i * sizes.listed + place]] == 2;
    }
  }
};
} // namespace

TEST(SequenceInputs, EveryDrawKeepsThePromise) {
  Seen seen;
  uint64_t seed = 0;
  for (int64_t sequences : {1, 2, 3, 7})
    for (int64_t listed : {1, 2, 5})
      for (int64_t tokens : {1, 3, 8, 31})
        for (int64_t blockTokens : {1, 4, 7})
          // For none, for fewer than sequences, for all, and for more than tables list.
          for (int64_t blocks : {int64_t{1}, sequences, sequences * listed + 1, sequences * listed + 9}) {
            SequenceSizes sizes{.sequences = sequences,
                                .listed = listed,
                                .tokens = tokens,
                                .block_tokens = blockTokens,
                                .block_count = blocks};
            for (int round = 0; round < 2; ++round, ++seed) {
              DrawnSequences drawn = drawSequences(sizes, MixKey(seed, 0));
              ASSERT_EQ(drawn.rows.size(), static_cast<size_t>(sequences + 1));
              ASSERT_EQ(drawn.lengths.size(), static_cast<size_t>(sequences));
              ASSERT_EQ(drawn.blocks.size(), static_cast<size_t>(sequences * listed));
              absl::Status kept = CheckSequences(sizes, drawn.rows, drawn.lengths, drawn.blocks);
              ASSERT_TRUE(kept.ok()) << "draw " << seed << ": " << kept;
              seen.add(sizes, drawn);
            }
          }
  EXPECT_GE(seed, 1000u);
  EXPECT_GE(seen.empty, 100);
  EXPECT_GE(seen.ofTheWholeStep, 100);
  EXPECT_GE(seen.withPast, 100);
  EXPECT_GE(seen.padded, 100);
  EXPECT_GE(seen.shared, 20);
}

TEST(SequenceInputs, EqualKeysDrawTheSame) {
  SequenceSizes sizes{.sequences = 3, .listed = 4, .tokens = 9, .block_tokens = 2, .block_count = 14};
  auto draw = [&](uint64_t seed) {
    DrawnSequences drawn = drawSequences(sizes, MixKey(seed, 1));
    return std::make_tuple(drawn.rows, drawn.lengths, drawn.blocks);
  };
  EXPECT_EQ(draw(5), draw(5));
  EXPECT_NE(draw(5), draw(6));
}
