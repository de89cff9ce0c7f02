//===- MemoryAdviceTest.cpp - Choices that do not pay are said, others not
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Driver/MemoryAdvice.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace bowline;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

namespace {

/// Llama 2 7B with sequences of 2048 tokens.
MemoryInputs inputsOf(MemoryStrategy strategy) {
  strategy.tokens = strategy.tokens == 0 ? 2048 : strategy.tokens;
  return {{.hidden = 4096, .inner = 11008, .queries = 4096, .keys = 4096, .vocabulary = 32000, .layers = 32},
          std::move(strategy),
          "dp"};
}

/// The advice for a plan that needs as much memory as the formulas say.
std::vector<std::string> advise(const MemoryInputs& inputs, const PrefetchSeconds& prefetch = {}) {
  return adviseOnMemory(inputs, predictedBytes(inputs.shape, inputs.strategy), prefetch);
}

TEST(MemoryAdvice, SaysNothingOfWhatPays) {
  EXPECT_THAT(advise(inputsOf({})), IsEmpty());
  EXPECT_THAT(advise(inputsOf({.zeroRanks = 64, .zero = 1, .isBf16 = true})), IsEmpty());
  EXPECT_THAT(advise(inputsOf({.zeroRanks = 64, .microbatches = 4, .zero = 2, .isBf16 = true})), IsEmpty());
  EXPECT_THAT(advise(inputsOf({.zeroRanks = 64, .zero = 3, .recompute = RecomputeLevel::Full, .isBf16 = true})),
              IsEmpty());
  EXPECT_THAT(advise(inputsOf({.tensor = 8, .isSequenceParallel = true})), IsEmpty());
}

TEST(MemoryAdvice, SaysWhatRecomputationSaves) {
  // Gradients at the end are more than activations at the begin, which are nothing beside moments.
  EXPECT_THAT(advise(inputsOf({.recompute = RecomputeLevel::Full, .tokens = 64})),
              ElementsAre(AllOf(StartsWith("--recompute full saves nothing: a rank needs 100."),
                                HasSubstr("GiB with it and 100."), HasSubstr("use --recompute none"))));
  EXPECT_THAT(advise(inputsOf({.recompute = RecomputeLevel::Selective, .tokens = 64})),
              ElementsAre(StartsWith("--recompute selective saves nothing")));
  EXPECT_THAT(advise(inputsOf({.zeroRanks = 64, .zero = 1, .recompute = RecomputeLevel::Full, .tokens = 64})),
              ElementsAre(AllOf(StartsWith("--recompute full saves "), HasSubstr(" %) by the formulas"))));
}

TEST(MemoryAdvice, SaysThatALowerLevelOfZeroIsEnough) {
  EXPECT_THAT(advise(inputsOf({.zeroRanks = 64, .zero = 2, .isBf16 = true})),
              ElementsAre(AllOf(StartsWith("--zero 2 saves nothing: a rank needs 24."),
                                HasSubstr("gradients of one microbatch are scattered"), HasSubstr("use --zero 1"))));
  // Two ranks save half of the weights, and gathered matrices of a model of few layers are more.
  MemoryInputs small = inputsOf({.zeroRanks = 2, .microbatches = 4, .zero = 3});
  small.shape.layers = 1;
  small.shape.vocabulary = 1000;
  EXPECT_THAT(advise(small), ElementsAre(AllOf(StartsWith("--zero 3 saves nothing: a rank needs 3.6 GiB with it and "
                                                          "3.3 GiB without"),
                                               HasSubstr("use --zero 2"))));
}

TEST(MemoryAdvice, SaysThatSequencesSaveNothing) {
  EXPECT_THAT(advise(inputsOf({.tensor = 8, .isSequenceParallel = true, .tokens = 64})),
              ElementsAre(StartsWith("--sequence-parallel saves 1.8 MiB of 12.6 GiB (0.0 %) by the formulas")));
}

TEST(MemoryAdvice, SaysThatGathersAreHiddenAlready) {
  MemoryInputs inputs = inputsOf({.zeroRanks = 64, .zero = 3, .prefetch = 2});
  inputs.shape.vocabulary = 1000;  // so that the peak is in a layer, and a matrix of 4096 x 11008 in f32 is 172 MiB
  EXPECT_THAT(advise(inputs, {.gather = 0.004, .product = 0.005}),
              ElementsAre(AllOf(StartsWith("--prefetch 2 takes 172.0 MiB more than --prefetch 1"),
                                HasSubstr("(4 ms) is hidden behind one product (5 ms)"))));
  EXPECT_THAT(advise(inputs, {.gather = 0.006, .product = 0.005}), IsEmpty());
  EXPECT_THAT(advise(inputsOf({.zeroRanks = 64, .zero = 3}), {.gather = 0.004, .product = 0.005}), IsEmpty());
}

TEST(MemoryAdvice, SaysThatRoundedCopiesAreMore) {
  EXPECT_THAT(advise(inputsOf({.tensor = 8, .microbatches = 4, .isBf16 = true, .tokens = 512})),
              ElementsAre(AllOf(StartsWith("--dtype bf16 takes "), HasSubstr(" more than f32, which needs "))));
}

TEST(MemoryAdvice, SaysThatAPlanIsNotWhatFormulasSay) {
  const MemoryInputs inputs = inputsOf({});
  const auto formula = static_cast<double>(predictedBytes(inputs.shape, inputs.strategy));
  auto of = [&](double times) { return adviseOnMemory(inputs, static_cast<uint64_t>(times * formula), {}); };
  EXPECT_THAT(of(1.09), IsEmpty());
  EXPECT_THAT(of(0.91), IsEmpty());
  EXPECT_THAT(of(1.25), ElementsAre(AllOf(HasSubstr("25 % more than the formulas"), HasSubstr("which say 100."))));
  EXPECT_THAT(of(0.75), ElementsAre(HasSubstr("25 % less than the formulas")));
}

}  // namespace
