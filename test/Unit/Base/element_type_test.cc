#include "types/element_type.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace bowline {
namespace {

TEST(ElementTypeTest, NamesAreOfOneTypeEach) {
  std::set<std::string_view> names, mlir, safetensors, npy;
  std::set<int> gguf;
  for (const ElementTypeInfo& info : kElementTypes) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_TRUE(info.mlir.empty() || mlir.insert(info.mlir).second) << info.mlir;
    EXPECT_TRUE(info.safetensors.empty() || safetensors.insert(info.safetensors).second) << info.safetensors;
    EXPECT_TRUE(info.npy.empty() || npy.insert(info.npy).second) << info.npy;
    EXPECT_TRUE(info.gguf < 0 || gguf.insert(info.gguf).second) << info.gguf;
    EXPECT_EQ(ElementTypeFromName(info.name), info.type);
    if (!info.mlir.empty()) EXPECT_EQ(ElementTypeFromMlir(info.mlir), info.type);
    if (!info.safetensors.empty()) EXPECT_EQ(ElementTypeFromSafetensors(info.safetensors), info.type);
    if (!info.npy.empty()) EXPECT_EQ(ElementTypeFromNpy(info.npy), info.type);
    if (info.gguf >= 0) EXPECT_EQ(ElementTypeFromGguf(info.gguf), info.type);
    EXPECT_EQ(NameOf(info.type), info.name);
  }
}

TEST(ElementTypeTest, NoOtherNameIsAType) {
  for (const char* name : {"", "f8", "F32", "float"}) EXPECT_EQ(ElementTypeFromName(name), std::nullopt) << name;
  // Empty cells of the table are no names.
  EXPECT_EQ(ElementTypeFromMlir(""), std::nullopt);
  EXPECT_EQ(ElementTypeFromSafetensors(""), std::nullopt);
  EXPECT_EQ(ElementTypeFromSafetensors("F8_E4M3"), std::nullopt);
  EXPECT_EQ(ElementTypeFromNpy(""), std::nullopt);
  EXPECT_EQ(ElementTypeFromGguf(-1), std::nullopt);
  EXPECT_EQ(ElementTypeFromGguf(4), std::nullopt);  // of a format that is no more
}

TEST(ElementTypeTest, ANumberThatIsNoTypeIsSaidSo) {
  const auto none = static_cast<ElementType>(77);
  EXPECT_FALSE(IsElementType(none));
  EXPECT_EQ(NameOf(none), "type 77");
  EXPECT_EQ(SizeOf(none), 0u);
  EXPECT_EQ(BytesOf(none, 32), std::nullopt);
  EXPECT_FALSE(IsFloat(none) || IsInteger(none) || CanReduce(none));
}

TEST(ElementTypeTest, BlocksHaveTheBytesOfTheirParts) {
  // Elements of 4 bits and a scale of 16: 4.5 bits each.
  EXPECT_EQ(BytesOf(ElementType::kQ4_0, 32), 32 * 4 / 8 + 2);
  // A minimum as well.
  EXPECT_EQ(BytesOf(ElementType::kQ4_1, 64), 2 * (32 * 4 / 8 + 2 + 2));
  EXPECT_EQ(BytesOf(ElementType::kQ5_0, 32), 32 * 5 / 8 + 2);
  EXPECT_EQ(BytesOf(ElementType::kQ5_1, 32), 32 * 5 / 8 + 2 + 2);
  EXPECT_EQ(BytesOf(ElementType::kQ8_0, 32), 32 + 2);
  // 8 groups with scale and minimum of 6 bits each, and of all these a scale each; two bits, 16 groups of 4 and 4.
  EXPECT_EQ(BytesOf(ElementType::kQ4_K, 256), 256 * 4 / 8 + 8 * 2 * 6 / 8 + 2 + 2);
  EXPECT_EQ(BytesOf(ElementType::kQ5_K, 256), 256 * 5 / 8 + 8 * 2 * 6 / 8 + 2 + 2);
  EXPECT_EQ(BytesOf(ElementType::kQ2_K, 256), 256 * 2 / 8 + 16 + 2 + 2);
  // 16 groups with a scale of 6 bits or a byte.
  EXPECT_EQ(BytesOf(ElementType::kQ3_K, 256), 256 * 3 / 8 + 16 * 6 / 8 + 2);
  EXPECT_EQ(BytesOf(ElementType::kQ6_K, 256), 256 * 6 / 8 + 16 + 2);
  // Half of a block is nothing, and no element of one has an address.
  EXPECT_EQ(BytesOf(ElementType::kQ4_K, 128), std::nullopt);
  EXPECT_EQ(SizeOf(ElementType::kQ4_K), 0u);
  EXPECT_EQ(BytesOf(ElementType::kF16, 3), 6u);
  EXPECT_EQ(BytesOf(ElementType::kQ8_0, 0), 0u);
}

TEST(ElementTypeTest, ListsForMessages) {
  EXPECT_EQ(NamesOf(&CanReduce), "f32, f64, bf16, f16, i64, i32");
  EXPECT_THAT(SafetensorsTypeNames(), ::testing::StartsWith("F32, F64, BF16, F16, "));
  EXPECT_THAT(SafetensorsTypeNames(), ::testing::Not(::testing::HasSubstr("Q")));
}

}  // namespace
}  // namespace bowline
