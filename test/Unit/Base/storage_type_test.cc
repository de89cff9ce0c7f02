#include "runtime/base/storage_type.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace bowline {
namespace {

template <typename T>
std::vector<float> Convert(StorageType type, const std::vector<T>& values) {
  EXPECT_EQ(SizeOf(type), sizeof(T));
  // One byte off, since files promise no alignment.
  std::vector<uint8_t> bytes(values.size() * sizeof(T) + 1);
  std::memcpy(bytes.data() + 1, values.data(), values.size() * sizeof(T));
  std::vector<float> out(values.size());
  ConvertToF32(type, bytes.data() + 1, absl::MakeSpan(out));
  return out;
}

TEST(StorageTypeTest, NamesRoundTrip) {
  for (int i = 0; i <= static_cast<int>(StorageType::kBool); ++i) {
    const StorageType type = static_cast<StorageType>(i);
    EXPECT_EQ(StorageTypeFromName(NameOf(type)), type);
    EXPECT_NE(SupportedStorageTypes().find(NameOf(type)), absl::string_view::npos);
  }
  EXPECT_EQ(StorageTypeFromName("f32"), absl::nullopt);
  EXPECT_EQ(StorageTypeFromName("F8_E4M3"), absl::nullopt);
}

TEST(StorageTypeTest, EveryTypeConverts) {
  using Floats = std::vector<float>;
  EXPECT_EQ(Convert<double>(StorageType::kF64, {0.1, -2, 1e300, -1e300}), (Floats{0.1f, -2, INFINITY, -INFINITY}));
  EXPECT_EQ(Convert<float>(StorageType::kF32, {0.1f, -2}), (Floats{0.1f, -2}));
  EXPECT_EQ(Convert<uint16_t>(StorageType::kF16, {0x3c00, 0xc000}), (Floats{1, -2}));
  EXPECT_EQ(Convert<uint16_t>(StorageType::kBF16, {0x3f80, 0xc000}), (Floats{1, -2}));
  EXPECT_EQ(Convert<int64_t>(StorageType::kI64, {-5, int64_t{1} << 40}), (Floats{-5, 0x1p40f}));
  EXPECT_EQ(Convert<int32_t>(StorageType::kI32, {-5, 7}), (Floats{-5, 7}));
  EXPECT_EQ(Convert<int16_t>(StorageType::kI16, {-5, 7}), (Floats{-5, 7}));
  EXPECT_EQ(Convert<int8_t>(StorageType::kI8, {-5, 7}), (Floats{-5, 7}));
  EXPECT_EQ(Convert<uint64_t>(StorageType::kU64, {5, UINT64_MAX}), (Floats{5, 0x1p64f}));
  EXPECT_EQ(Convert<uint32_t>(StorageType::kU32, {5, UINT32_MAX}), (Floats{5, 0x1p32f}));
  EXPECT_EQ(Convert<uint16_t>(StorageType::kU16, {5, 65535}), (Floats{5, 65535}));
  EXPECT_EQ(Convert<uint8_t>(StorageType::kU8, {5, 255}), (Floats{5, 255}));
  EXPECT_EQ(Convert<uint8_t>(StorageType::kBool, {0, 1, 7}), (Floats{0, 1, 1}));
}

TEST(StorageTypeTest, F64AtTheEdgeOfF32) {
  const double largest = std::numeric_limits<float>::max();
  const double midpoint = 0x1.ffffffp127;
  EXPECT_EQ(Convert<double>(StorageType::kF64, {largest, std::nextafter(midpoint, 0), midpoint}),
            (std::vector<float>{std::numeric_limits<float>::max(), std::numeric_limits<float>::max(), INFINITY}));
  EXPECT_TRUE(std::isnan(Convert<double>(StorageType::kF64, {NAN})[0]));
}

}  // namespace
}  // namespace bowline
