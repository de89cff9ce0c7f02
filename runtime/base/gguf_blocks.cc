#include "runtime/base/gguf_blocks.h"

#include <array>
#include <cstddef>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/convert_elements.h"

namespace bowline {
namespace {

float Half(const uint8_t* bytes) {
  float value;
  ConvertToF32(ElementType::kF16, bytes, {&value, 1});
  return value;
}

template <ElementType type>
void ReadElement(const uint8_t* block, float* out) {
  ConvertToF32(type, block, {out, 1});
}

// d: f16; 16 bytes, of which byte i has element i below and element i + 16 above.
void ReadQ4_0(const uint8_t* block, float* out) {
  const float scale = Half(block);
  for (int i = 0; i < 16; ++i) {
    out[i] = scale * static_cast<float>((block[2 + i] & 15) - 8);
    out[i + 16] = scale * static_cast<float>((block[2 + i] >> 4) - 8);
  }
}

// d, m: f16; 16 bytes as in Q4_0.
void ReadQ4_1(const uint8_t* block, float* out) {
  const float scale = Half(block), minimum = Half(block + 2);
  for (int i = 0; i < 16; ++i) {
    out[i] = scale * static_cast<float>(block[4 + i] & 15) + minimum;
    out[i + 16] = scale * static_cast<float>(block[4 + i] >> 4) + minimum;
  }
}

// d: f16; 32 signed bytes.
void ReadQ8_0(const uint8_t* block, float* out) {
  const float scale = Half(block);
  for (int i = 0; i < 32; ++i) out[i] = scale * static_cast<float>(static_cast<int8_t>(block[2 + i]));
}

// d, dmin: f16; 12 bytes with 8 scales and 8 minima of 6 bits; 128 bytes, 32 for two groups of 32 elements each.
void ReadQ4_K(const uint8_t* block, float* out) {
  const float scale = Half(block), minimum = Half(block + 2);
  const uint8_t* const packed = block + 4;
  for (int group = 0; group < 8; ++group) {
    int of_scale, of_minimum;
    if (group < 4) {
      of_scale = packed[group] & 63;
      of_minimum = packed[group + 4] & 63;
    } else {
      of_scale = (packed[group + 4] & 15) | ((packed[group - 4] >> 6) << 4);
      of_minimum = (packed[group + 4] >> 4) | ((packed[group] >> 6) << 4);
    }
    const float d = scale * static_cast<float>(of_scale), m = minimum * static_cast<float>(of_minimum);
    const uint8_t* const quants = block + 16 + 32 * (group / 2);
    const int shift = group % 2 == 0 ? 0 : 4;
    for (int i = 0; i < 32; ++i) out[32 * group + i] = d * static_cast<float>((quants[i] >> shift) & 15) - m;
  }
}

// 128 bytes of low 4 bits, 64 bytes of high 2 bits, 16 signed scales of 16 elements each, d: f16.
void ReadQ6_K(const uint8_t* block, float* out) {
  const float scale = Half(block + 208);
  for (int half = 0; half < 2; ++half) {
    const uint8_t* const low = block + 64 * half;
    const uint8_t* const high = block + 128 + 32 * half;
    for (int part = 0; part < 4; ++part) {
      for (int i = 0; i < 32; ++i) {
        const int four = (low[i + 32 * (part % 2)] >> (part < 2 ? 0 : 4)) & 15;
        const int two = (high[i] >> (2 * part)) & 3;
        const int element = 128 * half + 32 * part + i;
        const auto of_group = static_cast<int8_t>(block[192 + element / 16]);
        out[element] = scale * static_cast<float>(of_group) * static_cast<float>((four | (two << 4)) - 32);
      }
    }
  }
}

constexpr std::array<GgufType, 8> kGgufTypes = {{
    {0, "F32", 1, 4, ReadElement<ElementType::kF32>},
    {1, "F16", 1, 2, ReadElement<ElementType::kF16>},
    {2, "Q4_0", 32, 18, ReadQ4_0},
    {3, "Q4_1", 32, 20, ReadQ4_1},
    {8, "Q8_0", 32, 34, ReadQ8_0},
    {12, "Q4_K", 256, 144, ReadQ4_K},
    {14, "Q6_K", 256, 210, ReadQ6_K},
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
