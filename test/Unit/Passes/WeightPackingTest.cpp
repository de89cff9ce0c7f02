//===- WeightPackingTest.cpp - Weights in the order in which matrix products read them
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Hoisting/WeightPacking.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "passes/Analysis/Roles.h"
#include "passes/Analysis/TemporaryBlocks.h"
#include "passes/Hoisting/MemoryOffers.h"
#include "passes/Hoisting/Passes.h"
#include "test/Unit/Interp/OpHarness.h"
#include "llvm/Support/FormatVariadic.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace bowline;
using namespace bowline::test;
using testing::ElementsAre;
using testing::IsEmpty;

namespace {

constexpr PackingThresholds kAnySaving{-1e9, -1e9};
/// Of the pass.
const PackingThresholds kUsual{PackWeightsOptions().minSaving, PackWeightsOptions().minPersistentSaving};

/// A module with products of %x, of `rows` rows, with the weights %u and %v (200 x 70) in layout @fwd and of %y with
/// them in layout @bwd. Each entry of `launches` is "kernel weight". If it trains, another program writes the weights.
OwningOpRef<ModuleOp> products(int64_t rows, int64_t runs, const std::vector<std::string> &launches,
                               bool trains = true) {
  auto type = [](int64_t m, int64_t n) { return llvm::formatv("tensor<{0}x{1}xf32>", m, n).str(); };
  std::string text, x = type(rows, 70), y = type(rows, 200), w = type(200, 70);
  auto buffer = [&](const char *name, const char *kind, const std::string &type) {
    text += llvm::formatv("%{0} = plan.buffer \"{0}\" {1} : !plan.buffer<{2}>\n", name, kind, type).str();
  };
  auto kernel = [&](const char *name, int64_t n, int64_t k, const char *strides, const std::string &a,
                    const std::string &c) {
    text +=
        llvm::formatv("plan.kernel @{0} registered \"matmul\" config {{a_strides = array<i64: 0, {1}, 1>, b_strides "
                      "= array<i64: {2}>, batch = 1 : i64, c_strides = array<i64: 0, {3}, 1>, k = {1} : i64, m = {4} "
                      ": i64, n = {3} : i64} [#plan.arg<read, {5}>, #plan.arg<read, {6}>, #plan.arg<write, {7}>, "
                      "#plan.arg<write, tensor<64xui8>>] cost 0.0, 0.0\n",
                      name, k, strides, n, rows, a, w, c)
            .str();
  };
  buffer("u", "parameter", w);
  buffer("v", "parameter", w);
  buffer("x", "input", x);
  buffer("y", "temporary", y);
  buffer("z", "output", x);
  buffer("s", "scratch", "tensor<64xui8>");
  kernel("fwd", 200, 70, "0, 1, 70", x, y);
  kernel("bwd", 70, 200, "0, 70, 1", y, x);
  std::string timeline;
  for (int64_t run = 0; run < runs; ++run)
    timeline += llvm::formatv("{0}0, {1}", run > 0 ? ", " : "", run).str();
  text += "plan.program @p timeline [" + timeline + "] {\nplan.segment \"s\" {\n";
  for (const std::string &launch : launches) {
    bool forward = StringRef(launch).starts_with("fwd");
    text += llvm::formatv("plan.launch @{0}(%{1}, %{2}, %{3}, %s) : !plan.buffer<{4}>, !plan.buffer<{5}>, "
                          "!plan.buffer<{6}>, !plan.buffer<tensor<64xui8>>\n",
                          launch.substr(0, 3), forward ? "x" : "y", launch.substr(4), forward ? "y" : "z",
                          forward ? x : y, w, forward ? y : x)
                .str();
  }
  text += "}\n}\n";
  if (trains) {
    buffer("next", "temporary", w);
    text += "plan.program @update timeline [0, 0] {\nplan.segment \"update\" {\n";
    for (const char *weight : {"u", "v"})
      text += llvm::formatv("plan.copy %next to %{0} : !plan.buffer<{1}> to !plan.buffer<{1}>\n", weight, w).str();
    text += "}\n}\n";
  }
  return parseSourceString<ModuleOp>(text, ParserConfig(&context()));
}

/// "weight layout calls" of each, the best first.
std::vector<std::string> weightsOf(ModuleOp module, PackingThresholds least) {
  std::vector<std::string> lines;
  WeightPacking packing(module, *ModuleTarget::of(module), least);
  for (const PackableWeight &weight : packing.weights())
    lines.push_back(llvm::formatv("{0} {1} {2}", weight.source.getDefiningOp<plan::BufferOp>().getName(),
                                  weight.layout.getAs<IntegerAttr>("k").getInt() == 70 ? "fwd" : "bwd", weight.calls));
  return lines;
}

TEST(WeightPacking, SharesOneBufferForEachWeightAndLayout) {
  OwningOpRef<ModuleOp> module = products(32, 4, {"fwd u", "fwd v", "bwd u", "fwd u"});
  ASSERT_TRUE(module);
  EXPECT_THAT(weightsOf(*module, kAnySaving), ElementsAre("u fwd 8", "v fwd 4", "u bwd 4"));
}

TEST(WeightPacking, PaysWithManyCallsAndFewRows) {
  auto weights = [](int64_t rows, int64_t runs) {
    OwningOpRef<ModuleOp> module = products(rows, runs, {"fwd u"});
    return weightsOf(*module, kUsual);
  };
  EXPECT_THAT(weights(32, 1), IsEmpty());
  EXPECT_THAT(weights(32, 3), IsEmpty());
  EXPECT_THAT(weights(32, 5), ElementsAre("u fwd 5"));
  EXPECT_THAT(weights(128, 8), ElementsAre("u fwd 8"));
  EXPECT_THAT(weights(1024, 8), IsEmpty());
  EXPECT_THAT(weights(1024, 1000), IsEmpty());
}

TEST(WeightPacking, CostsNothingWhereWeightsStay) {
  // Packed when they are set, and not in a call.
  auto weights = [](int64_t rows, PackingThresholds least) {
    OwningOpRef<ModuleOp> module = products(rows, 1, {"fwd u"}, /*trains=*/false);
    return weightsOf(*module, least);
  };
  EXPECT_THAT(weights(1, kUsual), IsEmpty());
  EXPECT_THAT(weights(32, kUsual), ElementsAre("u fwd 1"));
  // 12 rows of 112 are more than a tenth, of 124 they are less.
  EXPECT_THAT(weights(100, kUsual), ElementsAre("u fwd 1"));
  EXPECT_THAT(weights(112, kUsual), IsEmpty());
  EXPECT_THAT(weights(256, kUsual), IsEmpty());
  EXPECT_THAT(weights(256, {1, 0.03}), ElementsAre("u fwd 1"));
  EXPECT_THAT(weights(1024, {1, 0.03}), IsEmpty());
}

TEST(WeightPacking, AsksForMoreOfCopiesThatPersist) {
  // The same products, of 128 rows, eight times in each call: 5 % of a step are enough, 9 % for good are not.
  OwningOpRef<ModuleOp> training = products(128, 8, {"fwd u"});
  OwningOpRef<ModuleOp> generation = products(128, 8, {"fwd u"}, /*trains=*/false);
  EXPECT_THAT(weightsOf(*training, kUsual), ElementsAre("u fwd 8"));
  EXPECT_THAT(weightsOf(*generation, kUsual), IsEmpty());
  EXPECT_THAT(weightsOf(*training, {kUsual.persistent, kUsual.inStep}), IsEmpty());
  EXPECT_THAT(weightsOf(*generation, {kUsual.persistent, kUsual.inStep}), ElementsAre("u fwd 8"));
}

TEST(WeightPacking, SaysWhatStaysPlain) {
  OwningOpRef<ModuleOp> training = products(128, 1, {"fwd u", "fwd v"});
  OwningOpRef<ModuleOp> generation = products(128, 1, {"fwd u", "bwd u"}, /*trains=*/false);
  WeightPacking inStep(*training, *ModuleTarget::of(*training), kUsual),
      forGood(*generation, *ModuleTarget::of(*generation), kUsual);
  EXPECT_EQ(inStep.tooLittleInStep().count, 2u);
  EXPECT_EQ(inStep.tooLittleInStep().bytes, 2 * 70 * 240 * 4); // 200 columns in panels of 48
  EXPECT_EQ(inStep.tooLittleForGood().count, 0u);
  EXPECT_EQ(forGood.tooLittleForGood().count, 2u);
  EXPECT_EQ(forGood.tooLittleForGood().bytes, (70 * 240 + 200 * 96) * 4);
  EXPECT_EQ(forGood.tooLittleInStep().count, 0u);
}

TEST(WeightPacking, LeavesMarkedProductsAlone) {
  for (bool isMarked : {false, true}) {
    OwningOpRef<ModuleOp> module = products(32, 6, {"fwd u", "fwd v", "bwd u", "fwd u"});
    if (isMarked)
      module->walk([&](plan::LaunchOp launch) {
        if (launch.getOperands()[1].getDefiningOp<plan::BufferOp>().getName() == "v" || launch.getKernel() == "bwd")
          launch->setAttr(kUnpackedAttr, UnitAttr::get(launch.getContext()));
      });
    WeightPacking packing(*module, *ModuleTarget::of(*module), kUsual);
    EXPECT_EQ(packing.declined(), isMarked ? 2u : 0u);
    packing.run();
    EXPECT_TRUE(succeeded(verify(*module)));
    std::vector<std::string> launches;
    module->walk([&](plan::LaunchOp launch) { launches.push_back(launch.getKernel().str()); });
    if (isMarked)
      EXPECT_THAT(launches, ElementsAre("pack_matrix", "fwd.packed", "fwd", "bwd", "fwd.packed"));
    else
      EXPECT_THAT(launches, ElementsAre("pack_matrix", "pack_matrix", "pack_matrix_0", "fwd.packed", "fwd.packed",
                                        "bwd.packed", "fwd.packed"));
  }
}

TEST(MemoryOffers, CountTheWholeArena) {
  OwningOpRef<ModuleOp> module = products(32, 6, {"fwd u", "fwd v", "bwd u", "fwd u"});
  MemoryOffers offers(*module, *ModuleTarget::of(*module), *costModelOf(*module), kUsual);
  ASSERT_EQ(offers.offers().size(), 3u);
  EXPECT_TRUE(llvm::is_sorted(offers.offers(),
                              [](const MemoryOffer &a, const MemoryOffer &b) { return a.worth() > b.worth(); }));
  // 'u' is read twice in the forward layout, so it comes first.
  EXPECT_THAT(offers.offers().front().launches, ElementsAre(0u, 3u));
  auto bytesOf = [&](const llvm::BitVector &taken) {
    RoleCopy copy(*module);
    offers.apply(*copy, taken);
    return arenaBytes(*copy);
  };
  for (unsigned count : {0u, 1u, 2u, 3u}) {
    llvm::BitVector first(3);
    first.set(0, count);
    int64_t bytes = bytesOf(first);
    std::optional<llvm::BitVector> taken = chooseWithin(bytes, 3, /*most=*/0, bytesOf);
    ASSERT_TRUE(taken);
    EXPECT_EQ(*taken, first);
    taken = chooseWithin(bytes - 1, 3, /*most=*/0, bytesOf);
    EXPECT_EQ(taken.has_value(), count > 0);
    if (taken)
      EXPECT_EQ(taken->count(), count - 1);
  }
  // Marks are those of the last choice.
  offers.decline(*module, llvm::BitVector(3));
  offers.decline(*module, llvm::BitVector(3, true));
  module->walk([&](plan::LaunchOp launch) { EXPECT_FALSE(launch->hasAttr(kUnpackedAttr)); });
}

TEST(MemoryOffers, WithoutRoomAreLeftOutOneByOne) {
  const std::vector<int64_t> bytes = {10, 50, 10, 40, 5, 5};
  auto choose = [&](int64_t limit, int most) {
    std::string text = "none";
    auto bytesOf = [&](const llvm::BitVector &taken) {
      int64_t sum = 100;
      for (unsigned index : taken.set_bits())
        sum += bytes[index];
      return sum;
    };
    if (std::optional<llvm::BitVector> taken = chooseWithin(limit, bytes.size(), most, bytesOf)) {
      EXPECT_LE(bytesOf(*taken), limit);
      text.clear();
      for (size_t index = 0; index < bytes.size(); ++index)
        text += (*taken)[index] ? '1' : '0';
    }
    return text;
  };
  EXPECT_EQ(choose(99, 4), "none");
  EXPECT_EQ(choose(100, 4), "000000");
  EXPECT_EQ(choose(220, 4), "111111");
  EXPECT_EQ(choose(219, 4), "111110");
  EXPECT_EQ(choose(125, 0), "100000");
  EXPECT_EQ(choose(125, 1), "101000");
  EXPECT_EQ(choose(125, 2), "101010");
  EXPECT_EQ(choose(130, 4), "101011");
}

} // namespace
