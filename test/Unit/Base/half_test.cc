#include "types/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "test/Support/test_seed.h"

namespace bowline {
namespace {

// The value of a 16-bit format, in double, from its definition.
double Decode(uint16_t bits, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == (1 << exponent_bits) - 1) {
    return mantissa == 0 ? sign * INFINITY : std::numeric_limits<double>::quiet_NaN();
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp(1.0 + std::ldexp(mantissa, -mantissa_bits), exponent - bias);
}

// Nearest, ties to even, by looking at the neighbours. `value` is finite and not negative.
uint16_t EncodeByNeighbours(double value, int exponent_bits, int mantissa_bits) {
  const uint16_t infinity = static_cast<uint16_t>(((1 << exponent_bits) - 1) << mantissa_bits);
  uint16_t low = 0;
  uint16_t high = infinity;
  while (high - low > 1) {
    const uint16_t middle = static_cast<uint16_t>((low + high) / 2);
    (Decode(middle, exponent_bits, mantissa_bits) <= value ? low : high) = middle;
  }
  const double below = Decode(low, exponent_bits, mantissa_bits);
  // For rounding, infinity stands at the next power of two.
  const double above =
      high == infinity ? std::ldexp(1.0, 1 << (exponent_bits - 1)) : Decode(high, exponent_bits, mantissa_bits);
  if (value - below != above - value) return value - below < above - value ? low : high;
  return low % 2 == 0 ? low : high;
}

TEST(HalfTest, EveryF16DecodesToItsValueAndBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const double expected = Decode(static_cast<uint16_t>(bits), 5, 10);
    const float value = F16ToF32(static_cast<uint16_t>(bits));
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(value));
      EXPECT_TRUE(std::isnan(F16ToF32(F32ToF16(value))));
      continue;
    }
    ASSERT_EQ(value, expected) << bits;
    ASSERT_EQ(F32ToF16(value), bits);
  }
}

TEST(HalfTest, EveryBf16DecodesToItsValueAndBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const double expected = Decode(static_cast<uint16_t>(bits), 8, 7);
    const float value = Bf16ToF32(static_cast<uint16_t>(bits));
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(value));
      EXPECT_TRUE(std::isnan(Bf16ToF32(F32ToBf16(value))));
      continue;
    }
    ASSERT_EQ(value, expected) << bits;
    ASSERT_EQ(F32ToBf16(value), bits);
  }
}

void ExpectRounded(float value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  ASSERT_EQ(F32ToF16(value), EncodeByNeighbours(std::fabs(value), 5, 10) | sign) << value;
  ASSERT_EQ(F32ToBf16(value), EncodeByNeighbours(std::fabs(value), 8, 7) | sign) << value;
}

TEST(HalfTest, RandomValuesRoundToNearestEven) {
  std::mt19937 random(TestSeed());
  for (int i = 0; i < 200'000; ++i) {
    const float value = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (std::isfinite(value)) ExpectRounded(value);
    // Most floats are beyond the range of f16; these are not.
    ExpectRounded(std::ldexp(static_cast<float>(random() % (1 << 24)), static_cast<int>(random() % 44) - 50));
  }
}

TEST(HalfTest, MidpointsAndTheirNeighboursRoundToNearestEven) {
  for (uint32_t bits = 0; bits < 0x7c00; ++bits) {
    const float next = bits + 1 == 0x7c00 ? 65536.0f : F16ToF32(static_cast<uint16_t>(bits + 1));
    const float middle = (F16ToF32(static_cast<uint16_t>(bits)) + next) / 2;
    for (float value : {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, INFINITY)}) {
      ExpectRounded(value);
      ExpectRounded(-value);
    }
  }
}

TEST(HalfTest, NanKeepsItsSignAndNeverBecomesInfinity) {
  for (uint32_t bits : {0x7f800001u, 0xff800001u, 0x7fffffffu, 0xffc00000u}) {
    const float nan = std::bit_cast<float>(bits);
    for (float back : {F16ToF32(F32ToF16(nan)), Bf16ToF32(F32ToBf16(nan))}) {
      EXPECT_TRUE(std::isnan(back));
      EXPECT_EQ(std::signbit(back), (bits >> 31) != 0);
    }
  }
}

}  // namespace
}  // namespace bowline
