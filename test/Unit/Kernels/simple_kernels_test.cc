#include "kernels/reference/reference.h"
#include "test/Unit/Kernels/stored_testing.h"

namespace bowline::kernels::testing {
namespace {

Signature Rope(int64_t positions, int64_t half, double theta, int threads, DType dtype = DType::kF32) {
  return {"rope_angles",
          {Float("theta", theta)},
          {In({positions}, DType::kI32), Out({positions, half}, dtype), Out({positions, half}, dtype)},
          threads};
}

TEST(RopeAngles, AgreesWithReference) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 30; ++i) {
    const int64_t count = 1 + random() % 40, half = 1 + random() % 70;
    std::vector<int32_t> positions(count);
    for (int32_t& p : positions) p = static_cast<int32_t>(random() % 200000);
    Floats cosines(count * half, NAN), sines(count * half, NAN);
    RunKernel(Rope(count, half, 10000.0, 1 + i % 3), {positions.data(), cosines.data(), sines.data()});
    const auto expected = reference::RopeAngles(positions, half, 10000.0);
    EXPECT_LT(ScaledError(cosines, expected.cos), 6.1e-8);  // half a unit in the last place below 1, and f64's error
    EXPECT_LT(ScaledError(sines, expected.sin), 6.1e-8);
  }
}

TEST(RopeAngles, Bf16RoundsTheSameAngles) {
  std::vector<int32_t> positions = {0, 1, 77, 4095, 131071};
  Stored cosines = Unwritten(DType::kBF16, 5 * 33), sines = Unwritten(DType::kBF16, 5 * 33);
  RunKernel(Rope(5, 33, 10000.0, 2, DType::kBF16), {positions.data(), cosines.data(), sines.data()});
  const auto expected = reference::RopeAngles(positions, 33, 10000.0);
  EXPECT_LT(ErrorBeyondRounding(DType::kBF16, cosines.Values(), expected.cos), 6.1e-8);
  EXPECT_LT(ErrorBeyondRounding(DType::kBF16, sines.Values(), expected.sin), 6.1e-8);
}

Signature ScaledRope(const reference::RopeScaling& scaling, int64_t positions, int64_t half) {
  Signature signature = Rope(positions, half, 500000.0, 2);
  signature.attributes.push_back(Float("factor", scaling.factor));
  if (scaling.original != 0) {
    signature.attributes.push_back(Int("original_positions", static_cast<int64_t>(scaling.original)));
    signature.attributes.push_back(Float("low_turns", scaling.low));
    signature.attributes.push_back(Float("high_turns", scaling.high));
  }
  return signature;
}

TEST(RopeAngles, AreScaled) {
  std::vector<int32_t> positions = {0, 1, 77, 4095, 131071};
  constexpr int64_t kCount = 5, kHalf = 32;
  const reference::Angles plain = reference::RopeAngles(positions, kHalf, 500000.0);
  for (const reference::RopeScaling& scaling : {reference::RopeScaling{4}, {8, 8192, 1, 4}, {32, 8192, 1, 4}}) {
    Floats cosines(kCount * kHalf, NAN), sines(kCount * kHalf, NAN);
    RunKernel(ScaledRope(scaling, kCount, kHalf), {positions.data(), cosines.data(), sines.data()});
    const reference::Angles expected = reference::RopeAngles(positions, kHalf, 500000.0, scaling);
    EXPECT_LT(ScaledError(cosines, expected.cos), 6.1e-8);
    EXPECT_LT(ScaledError(sines, expected.sin), 6.1e-8);
    EXPECT_GT(ScaledError(sines, plain.sin), 0.1);
  }
}

TEST(RopeAngles, RefusesScalingThatIsNone) {
  const auto without = [](std::string_view name) {
    Signature signature = ScaledRope({8, 8192, 1, 4}, 3, 4);
    for (size_t i = 0; i < signature.attributes.size(); ++i) {
      if (signature.attributes[i].name == name) signature.attributes.erase(signature.attributes.begin() + i--);
    }
    return signature;
  };
  ExpectRefused(ScaledRope({0.5}, 3, 4), "'factor' must be at least 1");
  ExpectRefused(ScaledRope({INFINITY}, 3, 4), "must be finite");
  ExpectRefused(ScaledRope({8, -1, 1, 4}, 3, 4), "'original_positions' must be at least 1");
  ExpectRefused(ScaledRope({8, 8192, 0, 4}, 3, 4), "0 < 'low_turns' < 'high_turns'");
  ExpectRefused(ScaledRope({8, 8192, 4, 4}, 3, 4), "0 < 'low_turns' < 'high_turns'");
  ExpectRefused(ScaledRope({8, 8192, 1e-320, 2e-320}, 3, 4), "too close to each other");
  ExpectRefused(without("factor"), "'original_positions' needs 'factor'");
  for (const char* name : {"original_positions", "low_turns", "high_turns"}) {
    ExpectRefused(without(name), "need each other");
  }
}

TEST(RopeAngles, Refusals) {
  ExpectRefused(Rope(3, 4, 0.0, 1), "must be positive");
  ExpectRefused(Rope(3, 4, NAN, 1), "must be finite");
  Signature bad = Rope(3, 4, 1e4, 1);
  bad.arguments[2].shape = {3, 5};
  ExpectRefused(bad, "'sin' has shape [3, 5]");
  bad = Rope(3, 4, 1e4, 1);
  bad.arguments[0].shape = {2};
  ExpectRefused(bad, "'cos' has shape [3, 4]");
}

TEST(Fill, EveryElement) {
  Floats x(1003, NAN);
  RunKernel({"fill", {Float("value", -1.5)}, {Out({17, 59})}, 3}, {x.data()});
  EXPECT_THAT(x, ::testing::Each(-1.5f));
  std::vector<int32_t> i(5, 9);
  RunKernel({"fill", {Float("value", -7)}, {Out({5}, DType::kI32)}, 1}, {i.data()});
  EXPECT_THAT(i, ::testing::Each(-7));
  float scalar = 0;
  RunKernel({"fill", {Float("value", INFINITY)}, {Out({})}, 1}, {&scalar});
  EXPECT_EQ(scalar, INFINITY);
}

TEST(Fill, Bf16) {
  Stored x = Unwritten(DType::kBF16, 1003);
  RunKernel({"fill", {Float("value", 0.1)}, {Out({1003}, DType::kBF16)}, 3}, {x.data()});
  EXPECT_THAT(x.Values(), ::testing::Each(0.10009765625f));
}

TEST(Fill, ZerosHaveTheirSign) {
  for (double zero : {0.0, -0.0}) {
    Floats x(70, NAN);
    RunKernel({"fill", {Float("value", zero)}, {Out({70})}, 2}, {x.data()});
    for (float value : x) EXPECT_TRUE(value == 0 && std::signbit(value) == std::signbit(zero));
  }
}

// Larger than the caches, at addresses that are not those of vectors.
TEST(Fill, LargeAndUnaligned) {
  const int64_t count = (17 << 20) / 4 + 3;
  for (int64_t offset : {0, 1, 3}) {
    for (int threads : {1, 3}) {
      Floats x(count + offset + 1, -2.0f);
      RunKernel({"fill", {Float("value", 0.5)}, {Out({count})}, threads}, {x.data() + offset});
      EXPECT_EQ(std::count(x.begin() + offset, x.end() - 1, 0.5f), count);
      EXPECT_EQ(std::count(x.begin(), x.end(), -2.0f), offset + 1);
    }
  }
}

// Every bf16 and numbers between it and the next one.
TEST(Bf16, NarrowingRoundsToNearestEven) {
  const auto from_bits = [](uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
  };
  for (uint32_t upper = 0; upper < 1 << 16; ++upper) {
    const uint32_t bits = upper << 16;
    if (std::isnan(from_bits(bits)) || std::isinf(from_bits(bits))) continue;
    EXPECT_EQ(Narrow<Bf16>(from_bits(bits)).bits, upper);
    EXPECT_EQ(Narrow<Bf16>(from_bits(bits + 0x7fff)).bits, upper);
    EXPECT_EQ(Narrow<Bf16>(from_bits(bits + 0x8000)).bits, upper + upper % 2);
    EXPECT_EQ(Narrow<Bf16>(from_bits(bits + 0x8001)).bits, upper + 1);
  }
  for (uint32_t nan : {0x7f800001u, 0xff800001u, 0x7fffffffu, 0xffffffffu, 0x7fc00000u}) {
    const Bf16 narrow = Narrow<Bf16>(from_bits(nan));
    EXPECT_TRUE(std::isnan(Widen(narrow))) << nan;
    EXPECT_EQ(narrow.bits >> 15, nan >> 31);
  }
  EXPECT_EQ(Widen(Narrow<Bf16>(-INFINITY)), -INFINITY);
}

TEST(Fill, Refusals) {
  ExpectRefused({"fill", {Float("value", 0.5)}, {Out({5}, DType::kI32)}, 1}, "is not an i32");
  ExpectRefused({"fill", {Float("value", 3e9)}, {Out({5}, DType::kI32)}, 1}, "is not an i32");
  ExpectRefused({"fill", {Float("value", NAN)}, {Out({5}, DType::kI32)}, 1}, "is not an i32");
  ExpectRefused({"fill", {Float("value", 0)}, {Out({5}, DType::kF64)}, 1}, "f64");
  ExpectRefused({"fill", {}, {Out({5})}, 1}, "'value' is missing");
}

}  // namespace
}  // namespace bowline::kernels::testing
