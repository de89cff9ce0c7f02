//===- MemoryFormulaTest.cpp - Formulas of memory are those of the page
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include <fstream>
#include <nlohmann/json.hpp>

#include "compiler/Driver/MemoryFormula.h"
#include "gtest/gtest.h"

using namespace bowline;
using Json = nlohmann::json;

namespace {

RecomputeLevel levelOf(const std::string& name) {
  if (name == "full") return RecomputeLevel::Full;
  return name == "selective" ? RecomputeLevel::Selective : RecomputeLevel::None;
}

MemoryInputs inputsOf(const Json& record) {
  MemoryInputs inputs;
  inputs.shape = {.hidden = record["hidden"],
                  .inner = record["inner"],
                  .queries = record["hidden"],
                  .keys = record["keys"],
                  .vocabulary = record["vocabulary"],
                  .layers = record["layers"]};
  MemoryStrategy& strategy = inputs.strategy;
  strategy.tensor = record["tensor"];
  strategy.stages = record["stages"];
  strategy.zero = record["zero"];
  strategy.zeroRanks = record["zero_ranks"];
  std::string schedule = record["schedule"];
  if (record["chunks"] > 1) schedule += ":" + std::to_string(record["chunks"].get<int>());
  strategy.schedule = parseScheduleChoice(schedule).value();
  strategy.microbatches = record["microbatches"];
  strategy.isSequenceParallel = record["sequence"];
  strategy.prefetch = record["prefetch"];
  strategy.gathersOnce = record["once"];
  strategy.recompute = levelOf(record["recompute"]);
  strategy.isBf16 = record["dtype"] == "bf16";
  strategy.tokens = record["tokens"];
  return inputs;
}

/// Rows that are not recorded are 0.
void expectRows(const MemoryRows& rows, const Json& expected) {
  auto row = [&](const char* name) { return expected.value(name, int64_t{0}); };
  EXPECT_EQ(rows.weightsAndMoments, row("weights_and_moments"));
  EXPECT_EQ(rows.gradients, row("gradients"));
  EXPECT_EQ(rows.activations, row("activations"));
  EXPECT_EQ(rows.recomputed, row("recomputed"));
  EXPECT_EQ(rows.copies, row("copies"));
  EXPECT_EQ(rows.gathered, row("gathered"));
  EXPECT_EQ(rows.logits, row("logits"));
  EXPECT_EQ(rows.gradientsOfActivations, row("gradients_of_activations"));
  EXPECT_EQ(rows.passingGradients, row("passing_gradients"));
  int64_t sum = 0;
  for (const auto& [name, bytes] : expected.items()) sum += bytes.get<int64_t>();
  EXPECT_EQ(rows.sum(), sum);
}

/// memory_formula.py recorded them: memory_rows_test.py says how.
TEST(MemoryFormula, HasTheRowsOfThePage) {
  std::ifstream file(std::string(BOWLINE_TEST_DIR) + "/Unit/Driver/memory-rows.json");
  const Json records = Json::parse(file);
  ASSERT_GT(records.size(), 90u);
  for (const Json& record : records) {
    SCOPED_TRACE(record["name"].get<std::string>() + ", rank " + record["rank"].dump());
    const MemoryInputs inputs = inputsOf(record);
    const RankFormula formula(inputs.shape, inputs.strategy, record["rank"]);
    EXPECT_EQ(formula.parameters(), record["parameters"]);
    EXPECT_EQ(formula.inFlight(), record["in_flight"]);
    expectRows(formula.atBegin(), record["begin"]);
    expectRows(formula.atEnd(), record["end"]);
    EXPECT_EQ(formula.atPeak().sum(), std::max(formula.atBegin().sum(), formula.atEnd().sum()));
    EXPECT_GE(predictedBytes(inputs.shape, inputs.strategy), formula.atPeak().sum());
  }
}

LayeredShape shapeOfSevenBillion() {
  return {.hidden = 4096, .inner = 11008, .queries = 4096, .keys = 4096, .vocabulary = 32000, .layers = 32};
}

TEST(MemoryFormula, TakesTheLayersThatRanksHave) {
  const LayeredShape shape = shapeOfSevenBillion();
  MemoryStrategy strategy{.stages = 2, .microbatches = 4, .tokens = 2048};
  const RankFormula even(shape, strategy, 1);
  strategy.parts = {{.layers = 16, .hasEmbedding = true}, {.layers = 16, .hasHead = true}};
  EXPECT_EQ(RankFormula(shape, strategy, 1).atPeak().sum(), even.atPeak().sum());
  strategy.parts = {{.layers = 20, .hasEmbedding = true}, {.layers = 12, .hasHead = true}};
  EXPECT_EQ(even.parameters() - RankFormula(shape, strategy, 1).parameters(),
            4 * (shape.matrices() + 2 * shape.hidden));
  EXPECT_EQ(largestRank(shape, strategy), 0);
  strategy.parts = {{.layers = 4, .hasEmbedding = true}, {.layers = 28, .hasHead = true}};
  EXPECT_EQ(largestRank(shape, strategy), 1);
}

TEST(MemoryFormula, CountsHeadsThatAreNarrowerThanTheModel) {
  LayeredShape shape = shapeOfSevenBillion();
  const MemoryStrategy strategy{.tokens = 64};
  const int64_t wide = RankFormula(shape, strategy, 0).atBegin().activations;
  shape.queries = 1024;
  EXPECT_EQ(wide - RankFormula(shape, strategy, 0).atBegin().activations, 32 * 4 * 64 * 2 * (4096 - 1024));
  EXPECT_EQ(shape.matrices(), 2 * 4096 * (1024 + 4096) + 3 * 4096 * 11008);
}

TEST(MemoryFormula, KnowsItsSchedules) {
  for (const char* schedule : {"gpipe", "1f1b", "interleaved:2", "breadth_first:3", "zb_h1"})
    EXPECT_TRUE(hasFormula(parseScheduleChoice(schedule)->kind)) << schedule;
  for (const char* schedule : {"zb_h2", "zb_v", "dualpipe_v", "table.csv"})
    EXPECT_FALSE(hasFormula(parseScheduleChoice(schedule)->kind)) << schedule;
}

}  // namespace
