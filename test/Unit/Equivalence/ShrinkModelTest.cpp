//===- ShrinkModelTest.cpp - Small models divide as large ones do
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Driver/ShrinkModel.h"
#include "dialects/Graph/GraphOps.h"
#include "frontends/hf/Import.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/MLIRContext.h"
#include "test/Support/test_seed.h"
#include "gtest/gtest.h"

#include <random>
#include <set>

using namespace bowline;

namespace {

Strategy strategyOf(int64_t stages, int64_t data, int64_t tensor, const char *schedule = nullptr) {
  Strategy strategy;
  strategy.mesh = {{"pp", stages}, {"dp", data}, {"tp", tensor}};
  strategy.stageAxis = "pp", strategy.tensorAxis = "tp", strategy.sequenceAxis = "tp";
  strategy.batchAxes = {"dp"};
  if (schedule)
    strategy.schedule = *parseScheduleChoice(schedule);
  return strategy;
}

bool divides(int64_t parts, int64_t size) { return size % parts == 0; }

} // namespace

TEST(ShrinkModel, KeepsWhatDivides) {
  std::mt19937 random(TestSeed());
  auto integer = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); };
  for (int i = 0; i < 500; ++i) {
    int64_t tp = integer(1, 8), pp = integer(1, 4), dp = integer(1, 4);
    Strategy strategy = strategyOf(pp, dp, tp);
    SizedModel model;
    hf::ModelConfig &config = model.config;
    config.kvHeads = integer(1, 16);
    config.heads = config.kvHeads * integer(1, 8);
    config.headDim = 64;
    config.hidden = integer(0, 1) ? config.heads * config.headDim : 1000 + integer(0, 1000);
    config.intermediate = integer(5, 5000), config.vocabulary = integer(7, 60000);
    config.layers = integer(pp, 40);
    model.seq = integer(8, 4096), config.maxPositions = model.seq + integer(0, 1) * 100;
    model.batch = integer(1, 16), model.microbatches = integer(1, 32);
    SizedModel small = shrinkModel(model, strategy);
    const hf::ModelConfig &after = small.config;

    EXPECT_EQ(after.heads % after.kvHeads, 0);
    EXPECT_EQ(after.heads > after.kvHeads, config.heads > config.kvHeads);
    for (auto [a, b] : {std::pair{after.heads, config.heads}, {after.kvHeads, config.kvHeads}}) {
      EXPECT_EQ(divides(tp, a), divides(tp, b));
      EXPECT_EQ(divides(a, tp), divides(b, tp));
      EXPECT_EQ(a < tp, b < tp);
    }
    EXPECT_EQ(after.hidden == after.heads * after.headDim, config.hidden == config.heads * config.headDim);
    EXPECT_EQ(divides(tp, after.intermediate), divides(tp, config.intermediate));
    EXPECT_EQ(divides(tp, after.vocabulary), divides(tp, config.vocabulary));
    EXPECT_EQ(divides(tp, small.seq), divides(tp, model.seq));
    EXPECT_EQ(divides(dp, small.batch), divides(dp, model.batch));
    EXPECT_EQ(divides(pp, after.layers), divides(pp, config.layers));
    EXPECT_EQ(divides(pp, small.microbatches), divides(pp, model.microbatches));
    EXPECT_GE(after.layers, pp);
    EXPECT_GE(after.maxPositions, small.seq);
    for (auto [a, b] : {std::pair{after.hidden, config.hidden},
                        {after.intermediate, config.intermediate},
                        {after.vocabulary, config.vocabulary},
                        {after.layers, config.layers},
                        {small.seq, model.seq},
                        {small.batch, model.batch},
                        {small.microbatches, model.microbatches},
                        {after.heads, config.heads}})
      EXPECT_LE(a, b);
    // Small enough to be interpreted: no size is larger than the numbers that divide it require.
    EXPECT_LE(after.vocabulary, 7 + 2 * tp);
    EXPECT_LE(after.intermediate, 5 + 2 * tp);
    EXPECT_LE(after.layers, pp + 2);
  }
}

TEST(ShrinkModel, FewRanksDivideTheBatchAsMany) {
  for (int64_t data : {1, 2, 3, 4, 5, 8, 192, 193}) {
    Strategy strategy = strategyOf(8, data, 8), small = shrinkStrategy(strategy);
    EXPECT_EQ(small.getSize("pp"), 8);
    EXPECT_EQ(small.getSize("tp"), 8);
    EXPECT_EQ(small.getSize("dp"), data <= 3 ? data : 2 + data % 2);
    for (int64_t batch : {int64_t{1}, int64_t{2}, int64_t{7}, data, 2 * data, 3 * data + 1}) {
      int64_t few = shrinkBatch(batch, data, small.getSize("dp"));
      EXPECT_EQ(divides(small.getSize("dp"), few), divides(data, batch)) << batch << " on " << data;
      EXPECT_GE(few, 1);
      EXPECT_LE(few, batch);
    }
  }
  Strategy fsdp = strategyOf(1, 192, 8);
  fsdp.mesh.push_back({"fsdp", 16});
  fsdp.zeroAxis = "fsdp";
  EXPECT_EQ(shrinkStrategy(fsdp).getSize("fsdp"), 2);
  fsdp.tensorAxis = "dp"; // an axis for both
  EXPECT_EQ(shrinkStrategy(fsdp).getSize("dp"), 192);
  mlir::MLIRContext context;
  fsdp.patterns.push_back({"*", {}, mlir::UnknownLoc::get(&context)});
  EXPECT_EQ(shrinkStrategy(fsdp).getSize("fsdp"), 16);
}

TEST(ShrinkModel, KeepsWhatTheStrategyCounts) {
  SizedModel model;
  model.config.heads = model.config.kvHeads = 4, model.config.headDim = 8, model.config.hidden = 32;
  model.config.intermediate = 64, model.config.vocabulary = 100, model.config.maxPositions = model.seq = 16;
  model.config.layers = 12, model.microbatches = 24;
  Strategy listed = strategyOf(2, 1, 1);
  listed.stages = {{0, 3}, {4, 11}};
  EXPECT_EQ(shrinkModel(model, listed).config.layers, 12);
  EXPECT_EQ(shrinkModel(model, listed).microbatches, 4);
  EXPECT_EQ(shrinkModel(model, strategyOf(2, 1, 1, "interleaved:3")).config.layers, 6);
  EXPECT_EQ(shrinkModel(model, strategyOf(2, 1, 1, "zb_v")).config.layers, 4);
  SizedModel table = shrinkModel(model, strategyOf(2, 1, 1, "order.csv"));
  EXPECT_EQ(table.config.layers, 12);
  EXPECT_EQ(table.microbatches, 24);
}

/// A window that hides keys hides some of the shorter sequence too.
TEST(ShrinkModel, WindowsAreShortened) {
  absl::StatusOr<hf::ModelConfig> config = hf::parseConfig(
      R"({"model_type": "mistral", "vocab_size": 100, "hidden_size": 32, "intermediate_size": 64,
          "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4, "max_position_embeddings": 512,
          "sliding_window": 100})",
      "config.json");
  ASSERT_TRUE(config.ok()) << config.status();
  for (const auto &[seq, windows] : {std::pair<int64_t, std::set<int64_t>>{500, {2}}, {100, {100}}}) {
    SizedModel small = shrinkModel({.config = *config, .seq = seq}, strategyOf(1, 1, 1));
    EXPECT_EQ(small.seq, 4);
    mlir::MLIRContext context;
    auto module = hf::importModel(context, small.config, {.batch = 1, .seq = small.seq});
    ASSERT_TRUE(module.ok()) << module.status();
    std::set<int64_t> found;
    (**module)->walk([&](graph::AttentionOp op) { found.insert(op.getWindow()); });
    EXPECT_EQ(found, windows) << seq;
  }
}
