//===- LayerPartitionTest.cpp - Layers are divided as evenly as they can be
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Training/Stages/LayerPartition.h"
#include "test/Support/test_seed.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <numeric>
#include <random>

using namespace bowline;
using testing::ElementsAre;
using testing::Pair;

namespace {

/// The most expensive range, and the sum of squares.
using Quality = std::pair<double, double>;

Quality qualityOf(const std::vector<double> &costs, const std::vector<LayerRange> &ranges) {
  Quality quality = {0, 0};
  for (auto [first, last] : ranges) {
    double cost = std::accumulate(costs.begin() + first, costs.begin() + last + 1, 0.0);
    quality.first = std::max(quality.first, cost);
    quality.second += cost * cost;
  }
  return quality;
}

/// Of all divisions.
Quality bestOf(const std::vector<double> &costs, int64_t stages) {
  const auto layers = static_cast<int64_t>(costs.size());
  Quality best = {1e300, 1e300};
  for (uint32_t cuts = 0; cuts < (1U << (layers - 1)); ++cuts) {
    if (std::popcount(cuts) != stages - 1)
      continue;
    std::vector<LayerRange> ranges;
    int64_t first = 0;
    for (int64_t layer = 0; layer < layers; ++layer)
      if (layer == layers - 1 || (cuts >> layer & 1)) {
        ranges.push_back({first, layer});
        first = layer + 1;
      }
    best = std::min(best, qualityOf(costs, ranges));
  }
  return best;
}

} // namespace

TEST(LayerPartition, NoOtherDivisionIsBetter) {
  uint32_t seed = TestSeed();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 300; ++round) {
    std::vector<double> costs(1 + random() % 10);
    for (double &cost : costs) // whole numbers, so that sums are exact and ties happen
      cost = static_cast<double>(random() % (round % 2 == 0 ? 4 : 1000));
    for (int64_t stages = 1; stages <= static_cast<int64_t>(costs.size()); ++stages) {
      std::vector<LayerRange> ranges = partitionLayers(costs, stages);
      ASSERT_EQ(static_cast<int64_t>(ranges.size()), stages);
      int64_t next = 0;
      for (auto [first, last] : ranges) {
        ASSERT_EQ(first, next);
        ASSERT_GE(last, first);
        next = last + 1;
      }
      ASSERT_EQ(next, static_cast<int64_t>(costs.size()));
      ASSERT_EQ(qualityOf(costs, ranges), bestOf(costs, stages));
    }
  }
}

TEST(LayerPartition, TheFirstStagesGetTheFewestLayersAmongEquals) {
  EXPECT_THAT(partitionLayers({1, 1, 1, 1, 1}, 2), ElementsAre(Pair(0, 1), Pair(2, 4)));
  EXPECT_THAT(partitionLayers({1, 1, 1, 1, 1}, 3), ElementsAre(Pair(0, 0), Pair(1, 2), Pair(3, 4)));
}

TEST(LayerPartition, AnExpensiveLayerLeavesTheOthersEven) {
  EXPECT_THAT(partitionLayers({100, 1, 1, 1, 1}, 3), ElementsAre(Pair(0, 0), Pair(1, 2), Pair(3, 4)));
}

TEST(LayerPartition, ManyLayersTakeNoTime) {
  std::vector<double> costs(512, 1.0);
  EXPECT_THAT(partitionLayers(costs, 128).back(), Pair(508, 511));
}
