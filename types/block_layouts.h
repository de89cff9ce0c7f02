#ifndef BOWLINE_TYPES_BLOCK_LAYOUTS_H_
#define BOWLINE_TYPES_BLOCK_LAYOUTS_H_

// Where in a block of the formats of block_formats.h the bits of its elements are, for kernels, which decode vectors of
// them to the same bits as ReadBlocks.
//
// The elements of a block are runs of 16. Element i of a run is scale * q, or scale * q + offset where the format has
// offsets. q is a signed byte:
//   q = (((block[Low(run) + i] >> LowShift(run)) & kMask) + (((block[High(run) + i] >> HighShift(run)) & 3) << 4)) -
//   kBias
// modulo 256, the second summand only where kHasHigh. scale and offset are those of kRunsOfGroup consecutive runs, a
// group. scale * q is exact in f32, so that an element with an offset is rounded once, and its bits depend on nothing
// else. Scales that are NaN or infinite give the results of arithmetic.
//
// All of it is inlined and has internal linkage, so that sources that are compiled for an instruction set may use it.

#include <cstdint>

#include "types/element_type.h"
#include "types/half.h"

namespace bowline {

#define BOWLINE_BLOCK_FUNCTION [[maybe_unused, gnu::always_inline]] static constexpr

inline constexpr int kRunElements = 16;

// Little-endian bits of a half.
BOWLINE_BLOCK_FUNCTION uint16_t HalfBits(const uint8_t* bytes) {
  return static_cast<uint16_t>(bytes[0] | (bytes[1] << 8));
}

template <ElementType kType>
struct BlockSize {
  static constexpr ElementType kFormat = kType;
  static constexpr int kElements = InfoOf(kType).block_elements, kBytes = InfoOf(kType).block_bytes,
                       kRuns = kElements / kRunElements;
};

// A format's functions Scale and Offset take a function that converts the bits of a half: F16ToF32, or an instruction.
template <ElementType kType>
struct BlockFormat;

// d: f16; 32 signed bytes.
template <>
struct BlockFormat<ElementType::kQ8_0> : BlockSize<ElementType::kQ8_0> {
  static constexpr int kRunsOfGroup = 2, kMask = 255, kBias = 0;
  static constexpr bool kHasHigh = false, kHasOffset = false;
  BOWLINE_BLOCK_FUNCTION int Low(int run) { return 2 + kRunElements * run; }
  BOWLINE_BLOCK_FUNCTION int LowShift(int) { return 0; }
  template <typename Half>
  BOWLINE_BLOCK_FUNCTION float Scale(const uint8_t* block, int, Half half) {
    return half(HalfBits(block));
  }
};

// d: f16; 16 bytes, of which byte i has element i below and element i + 16 above.
template <>
struct BlockFormat<ElementType::kQ4_0> : BlockSize<ElementType::kQ4_0> {
  static constexpr int kRunsOfGroup = 2, kMask = 15, kBias = 8;
  static constexpr bool kHasHigh = false, kHasOffset = false;
  BOWLINE_BLOCK_FUNCTION int Low(int) { return 2; }
  BOWLINE_BLOCK_FUNCTION int LowShift(int run) { return 4 * run; }
  template <typename Half>
  BOWLINE_BLOCK_FUNCTION float Scale(const uint8_t* block, int, Half half) {
    return half(HalfBits(block));
  }
};

// d, m: f16; 16 bytes as in q4_0.
template <>
struct BlockFormat<ElementType::kQ4_1> : BlockSize<ElementType::kQ4_1> {
  static constexpr int kRunsOfGroup = 2, kMask = 15, kBias = 0;
  static constexpr bool kHasHigh = false, kHasOffset = true;
  BOWLINE_BLOCK_FUNCTION int Low(int) { return 4; }
  BOWLINE_BLOCK_FUNCTION int LowShift(int run) { return 4 * run; }
  template <typename Half>
  BOWLINE_BLOCK_FUNCTION float Scale(const uint8_t* block, int, Half half) {
    return half(HalfBits(block));
  }
  template <typename Half>
  BOWLINE_BLOCK_FUNCTION float Offset(const uint8_t* block, int, Half half) {
    return half(HalfBits(block + 2));
  }
};

// d, dmin: f16; 12 bytes with 8 scales and 8 minima of 6 bits, one of each for 32 elements; 128 bytes, 32 for two
// groups of 32 elements each, one below and one above.
template <>
struct BlockFormat<ElementType::kQ4_K> : BlockSize<ElementType::kQ4_K> {
  static constexpr int kRunsOfGroup = 2, kMask = 15, kBias = 0;
  static constexpr bool kHasHigh = false, kHasOffset = true;
  BOWLINE_BLOCK_FUNCTION int Low(int run) { return 16 + 32 * (run / 4) + kRunElements * (run % 2); }
  BOWLINE_BLOCK_FUNCTION int LowShift(int run) { return run % 4 < 2 ? 0 : 4; }
  template <typename Half>
  BOWLINE_BLOCK_FUNCTION float Scale(const uint8_t* block, int group, Half half) {
    const uint8_t* const packed = block + 4;
    const int scale = group < 4 ? packed[group] & 63 : (packed[group + 4] & 15) | ((packed[group - 4] >> 6) << 4);
    return half(HalfBits(block)) * static_cast<float>(scale);
  }
  template <typename Half>
  BOWLINE_BLOCK_FUNCTION float Offset(const uint8_t* block, int group, Half half) {
    const uint8_t* const packed = block + 4;
    const int minimum = group < 4 ? packed[group + 4] & 63 : (packed[group + 4] >> 4) | ((packed[group] >> 6) << 4);
    return -(half(HalfBits(block + 2)) * static_cast<float>(minimum));
  }
};

// 128 bytes of low 4 bits, 64 bytes of high 2 bits, 16 signed scales of 16 elements each, d: f16. Each half of the
// block is four parts of 32 elements: 64 bytes have the low bits of two below and of two above, 32 bytes the high bits
// of all.
template <>
struct BlockFormat<ElementType::kQ6_K> : BlockSize<ElementType::kQ6_K> {
  static constexpr int kRunsOfGroup = 1, kMask = 15, kBias = 32;
  static constexpr bool kHasHigh = true, kHasOffset = false;
  BOWLINE_BLOCK_FUNCTION int Part(int run) { return run % 8 / 2; }
  BOWLINE_BLOCK_FUNCTION int Low(int run) { return 64 * (run / 8) + 32 * (Part(run) % 2) + kRunElements * (run % 2); }
  BOWLINE_BLOCK_FUNCTION int LowShift(int run) { return Part(run) < 2 ? 0 : 4; }
  BOWLINE_BLOCK_FUNCTION int High(int run) { return 128 + 32 * (run / 8) + kRunElements * (run % 2); }
  BOWLINE_BLOCK_FUNCTION int HighShift(int run) { return 2 * Part(run); }
  template <typename Half>
  BOWLINE_BLOCK_FUNCTION float Scale(const uint8_t* block, int group, Half half) {
    return half(HalfBits(block + 208)) * static_cast<float>(static_cast<int8_t>(block[192 + group]));
  }
};

// visit(BlockFormat<type>{}) of a type for which IsBlockFormat (block_formats.h) holds.
template <typename Visitor>
[[maybe_unused, gnu::always_inline]] static inline auto VisitBlockFormat(ElementType type, Visitor visit) {
  if (type == ElementType::kQ8_0) return visit(BlockFormat<ElementType::kQ8_0>{});
  if (type == ElementType::kQ4_0) return visit(BlockFormat<ElementType::kQ4_0>{});
  if (type == ElementType::kQ4_1) return visit(BlockFormat<ElementType::kQ4_1>{});
  if (type == ElementType::kQ4_K) return visit(BlockFormat<ElementType::kQ4_K>{});
  if (type == ElementType::kQ6_K) return visit(BlockFormat<ElementType::kQ6_K>{});
  __builtin_trap();
}

#undef BOWLINE_BLOCK_FUNCTION

}  // namespace bowline

#endif  // BOWLINE_TYPES_BLOCK_LAYOUTS_H_
