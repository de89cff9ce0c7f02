#ifndef BOWLINE_TEST_UNIT_KERNELS_KERNEL_TESTING_H_
#define BOWLINE_TEST_UNIT_KERNELS_KERNEL_TESTING_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cpu/isa/isa.h"
#include "kernels/registry/registry.h"

namespace bowline::kernels::testing {

using Floats = std::vector<float>;

inline TensorSpec In(std::vector<int64_t> shape, DType dtype = DType::kF32) {
  return {Access::kRead, dtype, std::move(shape)};
}
inline TensorSpec Out(std::vector<int64_t> shape, DType dtype = DType::kF32) {
  return {Access::kWrite, dtype, std::move(shape)};
}
inline Attribute Int(std::string name, int64_t value) { return {std::move(name), {value}, {}, {}}; }
inline Attribute Ints(std::string name, std::vector<int64_t> values) {
  return {std::move(name), std::move(values), {}, {}};
}
inline Attribute Float(std::string name, double value) { return {std::move(name), {}, {value}, {}}; }

inline int64_t Count(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

inline Floats RandomFloats(std::mt19937_64& random, int64_t count, float magnitude = 1.0f) {
  std::uniform_real_distribution<float> value(-magnitude, magnitude);
  Floats x(count);
  for (float& element : x) element = value(random);
  return x;
}

inline std::vector<double> ToDouble(const Floats& x) { return {x.begin(), x.end()}; }

// Runs with scratch of exactly the declared size between guard bytes, filled with a NaN pattern so that reading scratch
// before writing it shows.
inline void RunKernel(const Signature& signature, const std::vector<void*>& arguments) {
  auto kernel = CreateKernel(signature);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  const size_t bytes = (*kernel)->ScratchBytes(), guard = 64;
  std::unique_ptr<unsigned char, decltype(&std::free)> memory(
      static_cast<unsigned char*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64 + 2 * guard)), &std::free);
  std::memset(memory.get(), 0xFF, bytes + 2 * guard);
  (*kernel)->Run(arguments, memory.get() + guard);
  for (size_t i = 0; i < guard; ++i) {
    ASSERT_EQ(memory.get()[i], 0xFF) << "wrote before its scratch";
    ASSERT_EQ(memory.get()[guard + bytes + i], 0xFF) << "wrote beyond its scratch";
  }
}

// max |actual - expected| / max(1, max |expected|).
inline double ScaledError(const Floats& actual, const std::vector<double>& expected) {
  double error = 0, magnitude = 1;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double difference = std::abs(actual[i] - expected[i]);
    error = std::isnan(difference) ? INFINITY : std::max(error, difference);
    magnitude = std::max(magnitude, std::abs(expected[i]));
  }
  return error / magnitude;
}

inline bool SameBits(const Floats& a, const Floats& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

inline void ExpectRefused(const Signature& signature, const std::string& message) {
  auto kernel = CreateKernel(signature);
  EXPECT_EQ(kernel.status().code(), absl::StatusCode::kInvalidArgument) << message;
  EXPECT_THAT(std::string(kernel.status().message()), ::testing::HasSubstr(message));
}

// Every instruction set that this machine can run, each test in turn.
class IsaTest : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    LimitIsaForTesting(GetParam());
    if (ActiveIsa() != GetParam()) GTEST_SKIP() << "this machine lacks the instruction set";
  }
  void TearDown() override { LimitIsaForTesting(kBestIsa); }
};

inline auto AllIsas() {
  return ::testing::Values(Isa::kBaseline, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16, Isa::kAmx);
}
inline std::string IsaName(const ::testing::TestParamInfo<Isa>& info) {
  constexpr const char* kNames[] = {"Baseline", "Avx2", "Avx512", "Avx512Bf16", "Amx"};
  return kNames[static_cast<int>(info.param)];
}

}  // namespace bowline::kernels::testing

#endif  // BOWLINE_TEST_UNIT_KERNELS_KERNEL_TESTING_H_
