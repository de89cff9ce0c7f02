//===- TargetTest.cpp - Names of processors, and bf16 and f16 on each
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/Codegen/TargetCpu.h"
#include "kernels/registry/cpu_level.h"
#include "test/Unit/Codegen/KernelHarness.h"
#include "types/half.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

using namespace bowline;
using namespace bowline::codegen;
using namespace bowline::test;

namespace {

TEST(TargetCpu, NamesAreThemselvesOrUnknown) {
  for (std::string_view name : kCpuLevelNames)
    EXPECT_EQ(targetCpu(name)->name, name);
  for (const char *name : {"", "x86-64", "x86-64-v3+avx512bf16", "x86-64-v4+", "znver4"})
    EXPECT_THAT(std::string(targetCpu(name).status().message()),
                testing::HasSubstr("; use native or one of x86-64-v2, x86-64-v3,"));
}

TEST(TargetCpu, VectorsAndBf16AreThoseOfTheLevel) {
  EXPECT_EQ(targetCpu("x86-64-v2")->vectorBits, 128);
  EXPECT_EQ(targetCpu("x86-64-v3")->vectorBits, 256);
  EXPECT_FALSE(targetCpu("x86-64-v4")->hasBf16);
  auto most = targetCpu("x86-64-v4+avx512bf16+amx");
  EXPECT_EQ(most->level, "x86-64-v4");
  EXPECT_EQ(most->vectorBits, 512);
  EXPECT_TRUE(most->hasBf16);
}

TEST(TargetCpu, NativeIsWhatThisProcessIsLimitedTo) { EXPECT_EQ(targetCpu("native")->name, NameOf(*NativeCpuLevel())); }

/// The nearest bf16, ties to the one whose last bit is zero; the instruction of AVX512-BF16 takes subnormal numbers for
/// zero and does not return them.
uint16_t rounded(float value, bool flushes) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value))
    return static_cast<uint16_t>(bits >> 16 | 0x40);
  if (flushes && std::fabs(value) < 0x1p-126F)
    return static_cast<uint16_t>(bits >> 16 & 0x8000);
  uint64_t low = bits & 0xFFFF, high = bits >> 16;
  return static_cast<uint16_t>(high + (low > 0x8000 || (low == 0x8000 && (high & 1)) ? 1 : 0));
}

class Bf16 : public testing::TestWithParam<std::string> {};

/// In whole vectors, in tails and one by one.
TEST_P(Bf16, IsTheNearestNumber) {
  constexpr int64_t kCount = (1 << 16) + 39;
  Kernels kernels(R"(func.func @vector(%x: tensor<65575xf32>) -> tensor<65575xbf16> {
      %r = arith.truncf %x : tensor<65575xf32> to tensor<65575xbf16>
      return %r : tensor<65575xbf16>
    }
    func.func @scalar(%x: tensor<65575x1xf32>) -> tensor<65575xbf16> {
      %r = graph.reduce max %x dims [1] : (tensor<65575x1xf32>) -> tensor<65575xf32>
      %n = arith.truncf %r : tensor<65575xf32> to tensor<65575xbf16>
      return %n : tensor<65575xbf16>
    })",
                  GetParam());
  ASSERT_TRUE(kernels.isLoaded());
  bool flushes = targetCpu(GetParam())->hasBf16;
  Buffer input(kCount * 4), output(kCount * 2);
  void *arguments[] = {input.data(), output.data()};
  auto *x = static_cast<float *>(input.data());
  uint32_t bits = 0;
  for (int chunk = 0; chunk < 64; ++chunk) {
    // Every exponent and sign, and ties half of the time.
    for (int64_t i = 0; i < kCount; ++i, bits += 1021 << 3)
      x[i] = std::bit_cast<float>(i & 1 ? bits : (bits & 0xFFFF0000) | 0x8000);
    for (size_t kernel : {0, 1}) {
      kernels.entry(kernel)(arguments, 0, kernels.info(kernel).parallelExtent);
      for (int64_t i = 0; i < kCount; ++i)
        ASSERT_EQ(static_cast<uint16_t *>(output.data())[i], rounded(x[i], flushes))
            << kernels.info(kernel).symbol << " of " << x[i];
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Bf16, testing::ValuesIn(runnableTargets()));

class F16 : public testing::TestWithParam<std::string> {};

/// All numbers and the middles between them, in whole vectors, in tails and one by one. The expected ones are those of
/// types/half.h, which test/Unit/Base compares with the format's definition.
TEST_P(F16, IsTheNearestNumber) {
  constexpr int64_t kCount = (1 << 16) + 39;
  Kernels kernels(R"(func.func @vector(%x: tensor<65575xf32>) -> tensor<65575xf16> {
      %r = arith.truncf %x : tensor<65575xf32> to tensor<65575xf16>
      return %r : tensor<65575xf16>
    }
    func.func @scalar(%x: tensor<65575x1xf32>) -> tensor<65575xf16> {
      %r = graph.reduce max %x dims [1] : (tensor<65575x1xf32>) -> tensor<65575xf32>
      %n = arith.truncf %r : tensor<65575xf32> to tensor<65575xf16>
      return %n : tensor<65575xf16>
    })",
                  GetParam());
  ASSERT_TRUE(kernels.isLoaded());
  Buffer input(kCount * 4), output(kCount * 2);
  void *arguments[] = {input.data(), output.data()};
  auto *x = static_cast<float *>(input.data());
  // From each number: itself, the middle to the next one, and the numbers just below and above that middle.
  for (int chunk = 0; chunk < 4; ++chunk) {
    for (int64_t i = 0; i < kCount; ++i) {
      uint32_t bits = std::bit_cast<uint32_t>(F16ToF32(static_cast<uint16_t>(i)));
      bool isSubnormal = (i & 0x7C00) == 0;
      float middle = isSubnormal
                         ? std::copysign(std::fabs(std::bit_cast<float>(bits)) + 0x1p-25F, std::bit_cast<float>(bits))
                         : std::bit_cast<float>(bits + 0x1000);
      x[i] = chunk == 0 ? std::bit_cast<float>(bits)
                        : std::bit_cast<float>(std::bit_cast<uint32_t>(middle) + static_cast<uint32_t>(chunk - 2));
    }
    for (size_t kernel : {0, 1}) {
      kernels.entry(kernel)(arguments, 0, kernels.info(kernel).parallelExtent);
      for (int64_t i = 0; i < kCount; ++i) {
        uint16_t got = static_cast<uint16_t *>(output.data())[i];
        if (std::isnan(x[i]))
          ASSERT_TRUE(std::isnan(F16ToF32(got))) << kernels.info(kernel).symbol << " of " << x[i];
        else
          ASSERT_EQ(got, F32ToF16(x[i])) << kernels.info(kernel).symbol << " of " << x[i];
      }
    }
  }
}

/// And the way back, of every number.
TEST_P(F16, IsReadExactly) {
  constexpr int64_t kCount = (1 << 16) + 39;
  Kernels kernels(R"(func.func @vector(%x: tensor<65575xf16>) -> tensor<65575xf32> {
      %r = arith.extf %x : tensor<65575xf16> to tensor<65575xf32>
      return %r : tensor<65575xf32>
    })",
                  GetParam());
  ASSERT_TRUE(kernels.isLoaded());
  Buffer input(kCount * 2), output(kCount * 4);
  void *arguments[] = {input.data(), output.data()};
  for (int64_t i = 0; i < kCount; ++i)
    static_cast<uint16_t *>(input.data())[i] = static_cast<uint16_t>(i);
  kernels.entry(0)(arguments, 0, kernels.info(0).parallelExtent);
  for (int64_t i = 0; i < kCount; ++i) {
    float got = static_cast<float *>(output.data())[i], want = F16ToF32(static_cast<uint16_t>(i));
    ASSERT_TRUE(std::bit_cast<uint32_t>(got) == std::bit_cast<uint32_t>(want) || (std::isnan(got) && std::isnan(want)))
        << i << " is " << got;
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, F16, testing::ValuesIn(runnableTargets()));

} // namespace
