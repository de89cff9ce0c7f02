#include "runtime/base/convert_elements.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace bowline {
namespace {

template <typename T>
std::vector<float> Convert(ElementType type, const std::vector<T>& values) {
  EXPECT_EQ(SizeOf(type), sizeof(T));
  // One byte off, since files promise no alignment.
  std::vector<uint8_t> bytes(values.size() * sizeof(T) + 1);
  std::memcpy(bytes.data() + 1, values.data(), values.size() * sizeof(T));
  std::vector<float> out(values.size());
  ConvertToF32(type, bytes.data() + 1, absl::MakeSpan(out));
  return out;
}

TEST(ConvertElementsTest, EveryTypeConverts) {
  using Floats = std::vector<float>;
  EXPECT_EQ(Convert<double>(ElementType::kF64, {0.1, -2, 1e300, -1e300}), (Floats{0.1f, -2, INFINITY, -INFINITY}));
  EXPECT_EQ(Convert<float>(ElementType::kF32, {0.1f, -2}), (Floats{0.1f, -2}));
  EXPECT_EQ(Convert<uint16_t>(ElementType::kF16, {0x3c00, 0xc000}), (Floats{1, -2}));
  EXPECT_EQ(Convert<uint16_t>(ElementType::kBF16, {0x3f80, 0xc000}), (Floats{1, -2}));
  EXPECT_EQ(Convert<int64_t>(ElementType::kI64, {-5, int64_t{1} << 40}), (Floats{-5, 0x1p40f}));
  EXPECT_EQ(Convert<int32_t>(ElementType::kI32, {-5, 7}), (Floats{-5, 7}));
  EXPECT_EQ(Convert<int16_t>(ElementType::kI16, {-5, 7}), (Floats{-5, 7}));
  EXPECT_EQ(Convert<int8_t>(ElementType::kI8, {-5, 7}), (Floats{-5, 7}));
  EXPECT_EQ(Convert<uint64_t>(ElementType::kU64, {5, UINT64_MAX}), (Floats{5, 0x1p64f}));
  EXPECT_EQ(Convert<uint32_t>(ElementType::kU32, {5, UINT32_MAX}), (Floats{5, 0x1p32f}));
  EXPECT_EQ(Convert<uint16_t>(ElementType::kU16, {5, 65535}), (Floats{5, 65535}));
  EXPECT_EQ(Convert<uint8_t>(ElementType::kU8, {5, 255}), (Floats{5, 255}));
  EXPECT_EQ(Convert<uint8_t>(ElementType::kBool, {0, 1, 7}), (Floats{0, 1, 1}));
}

TEST(ConvertElementsTest, F64AtTheEdgeOfF32) {
  const double largest = std::numeric_limits<float>::max();
  const double midpoint = 0x1.ffffffp127;
  EXPECT_EQ(Convert<double>(ElementType::kF64, {largest, std::nextafter(midpoint, 0), midpoint}),
            (std::vector<float>{std::numeric_limits<float>::max(), std::numeric_limits<float>::max(), INFINITY}));
  EXPECT_TRUE(std::isnan(Convert<double>(ElementType::kF64, {NAN})[0]));
}

TEST(ConvertElementsTest, OfF16ToBf16AndBack) {
  // 1 + 2^-10 loses its last bit in bf16; 2^-24 is kept; values beyond f16 become infinity there.
  const std::vector<uint16_t> halves = {0x3c01, 0x0001, 0x7bff, 0x7c00};
  std::vector<uint16_t> out(4);
  ASSERT_TRUE(CanConvert(ElementType::kF16, ElementType::kBF16));
  bowline::Convert(ElementType::kF16, absl::MakeSpan(reinterpret_cast<const uint8_t*>(halves.data()), 8),
                   ElementType::kBF16, reinterpret_cast<uint8_t*>(out.data()));
  EXPECT_EQ(out, (std::vector<uint16_t>{0x3f80, 0x3380, 0x4780, 0x7f80}));
  bowline::Convert(ElementType::kBF16, absl::MakeSpan(reinterpret_cast<const uint8_t*>(out.data()), 8),
                   ElementType::kF16, reinterpret_cast<uint8_t*>(out.data()));
  EXPECT_EQ(out, (std::vector<uint16_t>{0x3c00, 0x0001, 0x7c00, 0x7c00}));
}

// Every type that values are said to convert to gets elements of its own size and meaning.
TEST(ConvertElementsTest, WhatConvertsComesBack) {
  const std::vector<float> values = {1, -2, 0.5, 0};
  int types = 0;
  for (const ElementTypeInfo& info : kElementTypes) {
    if (!CanConvert(ElementType::kF32, info.type)) continue;
    ++types;
    std::vector<uint8_t> out(values.size() * SizeOf(info.type));
    bowline::Convert(ElementType::kF32, absl::MakeSpan(reinterpret_cast<const uint8_t*>(values.data()), 16), info.type,
                     out.data());
    std::vector<float> back(values.size());
    ConvertToF32(info.type, out.data(), absl::MakeSpan(back));
    EXPECT_EQ(back, values) << info.name;
  }
  EXPECT_EQ(types, 3);
}

TEST(ConvertElementsTest, BlocksConvertToNothingElseYet) {
  EXPECT_FALSE(CanConvert(ElementType::kQ4_K, ElementType::kF32));
  EXPECT_FALSE(CanConvert(ElementType::kF16, ElementType::kQ8_0));
  EXPECT_TRUE(CanConvert(ElementType::kQ8_0, ElementType::kQ8_0));
}

}  // namespace
}  // namespace bowline
