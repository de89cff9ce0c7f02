#include "types/block_formats.h"

#include <cstring>

#include "types/half.h"

namespace bowline {
namespace {

float Half(const uint8_t* bytes) {
  uint16_t bits;
  std::memcpy(&bits, bytes, sizeof(bits));
  return F16ToF32(bits);
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

struct Format {
  ElementType type;
  void (*read)(const uint8_t* block, float* out);
};

constexpr Format kFormats[] = {{ElementType::kQ8_0, ReadQ8_0},
                               {ElementType::kQ4_0, ReadQ4_0},
                               {ElementType::kQ4_1, ReadQ4_1},
                               {ElementType::kQ4_K, ReadQ4_K},
                               {ElementType::kQ6_K, ReadQ6_K}};

const Format* FindFormat(ElementType type) {
  for (const Format& format : kFormats) {
    if (format.type == type) return &format;
  }
  return nullptr;
}

}  // namespace

bool IsBlockFormat(ElementType type) { return FindFormat(type) != nullptr; }

std::optional<ElementType> BlockFormatFromName(std::string_view name) {
  const std::optional<ElementType> type = ElementTypeFromName(name);
  return type.has_value() && IsBlockFormat(*type) ? type : std::nullopt;
}

std::string BlockFormatNames() {
  std::string names;
  for (const Format& format : kFormats) {
    if (!names.empty()) names += ", ";
    names += InfoOf(format.type).name;
  }
  return names;
}

void ReadBlocks(ElementType type, const uint8_t* bytes, int64_t blocks, float* out) {
  const Format& format = *FindFormat(type);
  const ElementTypeInfo& info = InfoOf(type);
  for (int64_t block = 0; block < blocks; ++block) {
    format.read(bytes + block * info.block_bytes, out + block * info.block_elements);
  }
}

}  // namespace bowline
