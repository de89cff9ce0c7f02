//===- MathTest.cpp - Errors of the vector functions, in units in the last place
//
// Part of Bowline, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/Unit/Codegen/KernelHarness.h"
#include "llvm/Support/FormatVariadic.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

using namespace bowline::test;

namespace {

constexpr int64_t kChunk = 1 << 16;

/// The distance of `got` from `want` in steps of f32 at `want`.
double ulps(float got, double want) {
  float nearest = static_cast<float>(want);
  if (std::isnan(want) || std::isnan(got))
    return std::isnan(want) && std::isnan(got) ? 0 : INFINITY;
  if (std::isinf(nearest) || std::isinf(got))
    return nearest == got ? 0 : std::nextafter(got, nearest) == nearest && !std::isinf(want) ? 1 : INFINITY;
  int exponent = std::max(std::ilogb(want == 0 ? 1e-45 : want), -126);
  return std::fabs(got - want) / std::ldexp(1.0, exponent - 23);
}

struct Function {
  std::string op;
  double (*exact)(double);
  double bound;
  /// Results smaller than this count as if they were this large: where the formula cancels.
  double floor = 0;
  /// The bound on x86-64-v2, where it is another one.
  double boundWithoutFma = 0;
};

double logistic(double x) { return 1 / (1 + std::exp(-x)); }
double rsqrt(double x) { return 1 / std::sqrt(x); }
double silu(double x) { return std::isinf(x) && x < 0 ? 0 : x * logistic(x); }
double geluErf(double x) { return std::isinf(x) ? std::max(x, 0.0) : x / 2 * std::erfc(-x / std::sqrt(2.0)); }
double geluTanh(double x) {
  double u = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
  return std::isinf(x) ? std::max(x, 0.0) : x * logistic(2 * u);
}

const Function kFunctions[] = {
    {"math.exp", [](double x) { return std::exp(x); }, 1.25},
    {"math.log", [](double x) { return std::log(x); }, 1},
    {"math.tanh", [](double x) { return std::tanh(x); }, 2.5},
    {"math.erf", [](double x) { return std::erf(x); }, 2, 0, 2.75},
    {"math.sqrt", [](double x) { return std::sqrt(x); }, 0.5},
    {"math.rsqrt", rsqrt, 1.5},
    {"math.sin", [](double x) { return std::sin(x); }, 0.51},
    {"math.cos", [](double x) { return std::cos(x); }, 0.51},
    {"graph.logistic", logistic, 2.5},
    // Below, the logistic is subnormal: its error of half a step is multiplied by |x| < 104.
    {"graph.silu", silu, 3.5, 0x1p-119},
    // The sum of one and a number near minus one: the error is one of the unit, times |x| / 2 < 4.
    {"graph.gelu erf", geluErf, 1.5, 4},
    {"graph.gelu tanh", geluTanh, 1.5, 4},
};

class Math : public testing::TestWithParam<std::string> {};

/// How many f32 lie between two that are tried, and which: about four million of every exponent and sign, infinities
/// and NaN among them. BOWLINE_MATH_STEP=1 in the environment tries all, in about twenty minutes. Prime, so that the
/// low bits vary.
uint64_t inputStep() {
  const char *step = std::getenv("BOWLINE_MATH_STEP");
  return step ? std::max(std::strtoull(step, nullptr, 10), 1ULL) : 1021;
}

TEST_P(Math, ErrorsAreWithinTheirBounds) {
  std::string source;
  for (auto [i, function] : llvm::enumerate(kFunctions))
    source += llvm::formatv("func.func @k{0}(%a: tensor<{2}xf32>) -> tensor<{2}xf32> {{\n%r = {1} %a : "
                            "tensor<{2}xf32>\nreturn %r : tensor<{2}xf32> }\n",
                            i, function.op, kChunk);
  Kernels kernels(source, GetParam());
  ASSERT_TRUE(kernels.isLoaded());
  for (auto [i, function] : llvm::enumerate(kFunctions)) {
    Buffer input(kChunk * 4), output(kChunk * 4);
    void *arguments[] = {input.data(), output.data()};
    double worst = 0;
    float worstInput = 0;
    bool perElement = function.op == "math.sin" || function.op == "math.cos";
    uint64_t bits = 0, step = perElement ? 16381 : inputStep();
    for (uint64_t chunk = 0; chunk < (perElement ? 4 : (uint64_t{1} << 32) / step / kChunk); ++chunk) {
      float *x = static_cast<float *>(input.data());
      for (int64_t k = 0; k < kChunk; ++k, bits += step)
        x[k] = std::bit_cast<float>(static_cast<uint32_t>(bits));
      float edges[] = {0.0f,       -0.0f,       INFINITY, -INFINITY, NAN,   88.72283f, 88.72284f,
                       -87.33655f, -103.97f,    -104.1f,  1e-45f,    3e38f, -3e38f,    1.0f,
                       0.625f,     0.99999994f, 4.0f,     -1.0f,     0.5f};
      if (step > 1)
        std::memcpy(x, edges, sizeof(edges));
      kernels.entry(i)(arguments, 0, kernels.info(i).parallelExtent);
      for (int64_t k = 0; k < kChunk; ++k) {
        double want = function.exact(x[k]);
        float got = static_cast<float *>(output.data())[k];
        double error = ulps(got, want);
        if (std::fabs(want) < function.floor && std::isfinite(error))
          error = std::fabs(got - want) / (function.floor * 0x1p-23);
        if (error > worst) {
          worst = error;
          worstInput = x[k];
        }
      }
    }
    bool otherBound = function.boundWithoutFma > 0 && GetParam() == "x86-64-v2";
    EXPECT_LE(worst, otherBound ? function.boundWithoutFma : function.bound) << function.op << " at " << worstInput;
    RecordProperty(function.op, std::to_string(worst));
    printf("%-16s %-20s %.3f ulp, at %.9g\n", function.op.c_str(), GetParam().c_str(), worst, worstInput);
  }
}

/// 1 + erf(x), as in the derivative of gelu, and the sign of gelu below zero: each 17th number of [0.5, 6] with both
/// signs, and infinities.
TEST_P(Math, ErfBesideOneEndsAtOne) {
  std::string source = llvm::formatv(R"(
    func.func @sum(%a: tensor<{0}xf32>) -> tensor<{0}xf32> {{
      %one = arith.constant dense<1.0> : tensor<{0}xf32>
      %e = math.erf %a : tensor<{0}xf32>
      %r = arith.addf %one, %e : tensor<{0}xf32>
      return %r : tensor<{0}xf32>
    }
    func.func @gelu(%a: tensor<{0}xf32>) -> tensor<{0}xf32> {{
      %r = graph.gelu erf %a : tensor<{0}xf32>
      return %r : tensor<{0}xf32>
    })",
                                     kChunk);
  Kernels kernels(source, GetParam());
  ASSERT_TRUE(kernels.isLoaded());
  Buffer input(kChunk * 4), sums(kChunk * 4), gelus(kChunk * 4);
  float *x = static_cast<float *>(input.data());
  double worst = 0;
  for (uint64_t magnitude = std::bit_cast<uint32_t>(0.5f); magnitude < std::bit_cast<uint32_t>(6.0f);) {
    for (int64_t k = 0; k < kChunk; k += 2, magnitude += 17) {
      x[k] = std::bit_cast<float>(static_cast<uint32_t>(magnitude));
      x[k + 1] = -x[k];
    }
    x[0] = INFINITY;
    x[1] = -INFINITY;
    void *sum[] = {x, sums.data()}, *gelu[] = {x, gelus.data()};
    kernels.entry(0)(sum, 0, kernels.info(0).parallelExtent);
    kernels.entry(1)(gelu, 0, kernels.info(1).parallelExtent);
    for (int64_t k = 0; k < kChunk; ++k) {
      float got = static_cast<float *>(sums.data())[k], product = static_cast<float *>(gelus.data())[k];
      double exact = std::erfc(-static_cast<double>(x[k]));
      worst = std::max(worst, std::fabs(got - exact));
      ASSERT_TRUE(got >= 0 && got <= 2) << got << " at " << x[k];
      ASSERT_TRUE(x[k] > 0 || product <= 0) << product << " at " << x[k];
      if (std::fabs(x[k]) >= 3.93f)
        ASSERT_EQ(got, x[k] > 0 ? 2 : 0) << "at " << x[k];
      if (x[k] < -5.56f)
        ASSERT_EQ(product, 0) << "at " << x[k];
    }
  }
  // Of erf 2.5e-7, and the rounding of a sum below two.
  EXPECT_LE(worst, 2.5e-7 + 0x1p-24);
  printf("1 + erf          %-20s %.3g\n", GetParam().c_str(), worst);
}

INSTANTIATE_TEST_SUITE_P(Targets, Math, testing::ValuesIn(runnableTargets()));

} // namespace
