#include "runtime/base/gguf_blocks.h"

#include <array>
#include <cstddef>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/convert_elements.h"
#include "types/block_formats.h"

namespace bowline {
namespace {

template <ElementType type>
void ReadElement(const uint8_t* block, float* out) {
  ConvertToF32(type, block, {out, 1});
}

// A block of a format of blocks.
template <ElementType type>
void ReadBlock(const uint8_t* block, float* out) {
  ReadBlocks(type, block, 1, out);
}

constexpr std::array<GgufType, 8> kGgufTypes = {{
    {0, "F32", 1, 4, ReadElement<ElementType::kF32>},
    {1, "F16", 1, 2, ReadElement<ElementType::kF16>},
    {2, "Q4_0", 32, 18, ReadBlock<ElementType::kQ4_0>},
    {3, "Q4_1", 32, 20, ReadBlock<ElementType::kQ4_1>},
    {8, "Q8_0", 32, 34, ReadBlock<ElementType::kQ8_0>},
    {12, "Q4_K", 256, 144, ReadBlock<ElementType::kQ4_K>},
    {14, "Q6_K", 256, 210, ReadBlock<ElementType::kQ6_K>},
    {30, "BF16", 1, 2, ReadElement<ElementType::kBF16>},
}};

// By number; "" where ggml removed the type.
constexpr std::array<absl::string_view, 40> kGgufNames = {
    "F32",    "F16",   "Q4_0",  "Q4_1",   "",      "",      "Q5_0",    "Q5_1",   "Q8_0",    "Q8_1",
    "Q2_K",   "Q3_K",  "Q4_K",  "Q5_K",   "Q6_K",  "Q8_K",  "IQ2_XXS", "IQ2_XS", "IQ3_XXS", "IQ1_S",
    "IQ4_NL", "IQ3_S", "IQ2_S", "IQ4_XS", "I8",    "I16",   "I32",     "I64",    "F64",     "IQ1_M",
    "BF16",   "",      "",      "",       "TQ1_0", "TQ2_0", "",        "",       "",        "MXFP4",
};

}  // namespace

const GgufType* FindGgufType(uint32_t number) {
  for (const GgufType& type : kGgufTypes) {
    if (type.number == number) return &type;
  }
  return nullptr;
}

std::string NameOfGgufType(uint32_t number) {
  if (number < kGgufNames.size() && !kGgufNames[number].empty()) return std::string(kGgufNames[number]);
  return absl::StrCat("number ", number);
}

std::string GgufTypeNames() {
  std::vector<absl::string_view> names;
  for (const GgufType& type : kGgufTypes) names.push_back(type.name);
  return absl::StrJoin(names, ", ");
}

void ReadGgufBlocks(const GgufType& type, absl::Span<const uint8_t> bytes, absl::Span<float> out) {
  for (size_t block = 0; block < out.size() / type.block_elements; ++block) {
    type.read(bytes.data() + block * type.block_bytes, out.data() + block * type.block_elements);
  }
}

}  // namespace bowline
