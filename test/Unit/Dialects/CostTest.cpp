//===- CostTest.cpp - Costs that operations state
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Graph/GraphOps.h"
#include "test/Unit/Dialects/FactorRuleCheck.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::graph;
using namespace bowline::test;

/// How many keys the queries of one head see together: query s sees the keys t <= s + keys - queries, and of these the
/// last `window`.
static int64_t countPairs(int64_t queries, int64_t keys, bool causal, int64_t window) {
  int64_t pairs = 0;
  for (int64_t s = 0; s < queries; ++s)
    for (int64_t t = 0; t < keys; ++t) {
      int64_t last = causal ? s + keys - queries : keys - 1;
      pairs += t <= last && (window == 0 || t > last - window);
    }
  return pairs;
}

TEST(Costs, AttentionMultipliesWhatQueriesSee) {
  Random random;
  SCOPED_TRACE(random.trace());
  for (int i = 0; i < 300; ++i) {
    int64_t queries = random.integer(1, 6), keys = queries + random.pick({0, 0, 1, 5, 40}),
            heads = random.integer(1, 3);
    bool causal = random.integer(0, 3) != 0;
    int64_t window = causal && random.flip() ? random.integer(1, 9) : 0;
    Shape query = {2, queries, heads * 2, 4}, key = {2, keys, heads, 4};
    double pairs = static_cast<double>(2 * heads * 2 * countPairs(queries, keys, causal, window));
    std::string text = std::to_string(queries) + " queries, " + std::to_string(keys) + " keys, causal " +
                       std::to_string(causal) + ", window " + std::to_string(window);
    OpHarness forward({{random.reals(query)}, {random.reals(key)}, {random.reals(key)}},
                      [=](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
                        return AttentionOp::create(b, x[0], x[1], x[2], APFloat(0.5), causal, window);
                      });
    // Scores and weighted values, each with four multiply-adds for a pair.
    EXPECT_EQ(cast<CostModel>(forward.operation()).flops(), pairs * 2 * 4 * 2) << text;
    OpHarness backward({{random.reals(query)},
                        {random.reals(key)},
                        {random.reals(key)},
                        {random.reals(query)},
                        {random.reals({2, heads * 2, queries})},
                        {random.reals(query)}},
                       [=](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * {
                         return AttentionGradOp::create(b, x[0], x[1], x[2], x[3], x[4], x[5], APFloat(0.5), causal,
                                                        window);
                       });
    // Scores again, the probabilities' gradients, and those of query, key and value.
    EXPECT_EQ(cast<CostModel>(backward.operation()).flops(), pairs * 2 * 4 * 5) << text;
  }
}

TEST(Costs, GatherMovesTheRowsThatItGives) {
  Random random;
  OpHarness gather(
      {{random.reals({1000, 3})}, {random.integers({2, 5}, 0, 999), ElementKind::I32}},
      [](ImplicitLocOpBuilder &b, ValueRange x) -> Operation * { return GatherOp::create(b, x[0], x[1]); });
  EXPECT_EQ(cast<CostModel>(gather.operation()).bytes(), 2 * (10 * 3 * 8) + 10 * 4);
}
