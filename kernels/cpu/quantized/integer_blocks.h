#ifndef BOWLINE_KERNELS_CPU_QUANTIZED_INTEGER_BLOCKS_H_
#define BOWLINE_KERNELS_CPU_QUANTIZED_INTEGER_BLOCKS_H_

// Decodes blocks of four rows of weights side by side, as integers of 16 bits. Each row has a quarter of a vector. Only
// for *_isa.cc files.

#include "kernels/cpu/isa/half_vectors.h"
#include "kernels/cpu/isa/simd.h"
#include "kernels/cpu/quantized/wide_vectors.h"
#include "types/block_layouts.h"

namespace bowline::kernels::BOWLINE_ISA {

inline constexpr int kBlockRows = 4;

using Shorts = int16_t __attribute__((ext_vector_type(32)));
using UnsignedShorts = uint16_t __attribute__((ext_vector_type(32)));
using Quarter = int32_t __attribute__((ext_vector_type(4)));
using QuarterBytes = uint8_t __attribute__((ext_vector_type(16)));

// Pointers to blocks of four rows. Two of them may be the same row.
struct BlockRows {
  const uint8_t* row[kBlockRows];
};

template <typename V>
BOWLINE_ALWAYS_INLINE V LoadFrom(const uint8_t* p) {
  V v;
  __builtin_memcpy(&v, p, sizeof(v));
  return v;
}

// Loads 16 bytes, and copies them into the quarter of each row.
BOWLINE_ALWAYS_INLINE WideInts LoadForRows(const uint8_t* p) {
  const Quarter q = LoadFrom<Quarter>(p);
  return __builtin_shufflevector(q, q, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3);
}

// Adds to each lane of `sums` the products of the lane's two pairs of 16-bit integers of a and b.
BOWLINE_ALWAYS_INLINE WideInts AddPairs(WideInts sums, Shorts a, WideInts b) {
#if defined(__AVX512VNNI__)
  // Assembly, because compilers turn the intrinsic into two instructions.
  asm("vpdpwssd %2, %1, %0" : "+v"(sums) : "v"(a), "v"(b));
  return sums;
#else
  // Written in the form that compilers turn into vpmaddwd.
  using Products = int32_t __attribute__((ext_vector_type(32)));
  const Products products =
      __builtin_convertvector(a, Products) * __builtin_convertvector(__builtin_bit_cast(Shorts, b), Products);
  const WideInts even =
      __builtin_shufflevector(products, products, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  const WideInts odd =
      __builtin_shufflevector(products, products, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
  return sums + (even + odd);
#endif
}

// Loads 16 bytes of each row, from byte `at` of its block on.
BOWLINE_ALWAYS_INLINE UnsignedShorts LoadRows(const BlockRows& rows, int at) {
  const Quarter a = LoadFrom<Quarter>(rows.row[0] + at), b = LoadFrom<Quarter>(rows.row[1] + at),
                c = LoadFrom<Quarter>(rows.row[2] + at), d = LoadFrom<Quarter>(rows.row[3] + at);
  const auto ab = __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7),
             cd = __builtin_shufflevector(c, d, 0, 1, 2, 3, 4, 5, 6, 7);
  return __builtin_bit_cast(UnsignedShorts,
                            __builtin_shufflevector(ab, cd, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
}

// Decodes a run of each row: q + kBias (block_layouts.h) of its even elements, and of its odd ones.
template <typename Format>
BOWLINE_ALWAYS_INLINE void DecodeRows(const BlockRows& rows, int run, Shorts& even, Shorts& odd) {
  const UnsignedShorts low = LoadRows(rows, Format::Low(run));
  if constexpr (Format::kMask == 255) {
    static_assert(Format::kBias == 0);
    even = __builtin_bit_cast(Shorts, low << uint16_t{8}) >> int16_t{8};
    odd = __builtin_bit_cast(Shorts, low) >> int16_t{8};
    return;
  }
  const auto part = [](UnsignedShorts bytes, int shift, int mask) __attribute__((always_inline)) {
    return (bytes >> static_cast<uint16_t>(shift)) & static_cast<uint16_t>(mask);
  };
  UnsignedShorts first = part(low, Format::LowShift(run), Format::kMask),
                 second = part(low, 8 + Format::LowShift(run), Format::kMask);
  if constexpr (Format::kHasHigh) {
    const UnsignedShorts high = LoadRows(rows, Format::High(run));
    first |= part(high, Format::HighShift(run), 3) << uint16_t{4};
    second |= part(high, 8 + Format::HighShift(run), 3) << uint16_t{4};
  }
  even = __builtin_bit_cast(Shorts, first);
  odd = __builtin_bit_cast(Shorts, second);
}

// Spreads four numbers, one per row, over the quarters of the rows.
BOWLINE_ALWAYS_INLINE Wide Spread(Quad q) {
  return __builtin_shufflevector(q, q, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
}

// The scales and offsets of all groups of a block: a Quad has those of one group, one lane per row.
template <typename Format>
struct RowScales {
  static constexpr int kGroups = Format::kRuns / Format::kRunsOfGroup;
  alignas(64) Quad scale[kGroups], offset[Format::kHasOffset ? kGroups : 1];
};

BOWLINE_ALWAYS_INLINE uint16_t HalfOf(const uint8_t* p) { return LoadFrom<uint16_t>(p); }

BOWLINE_ALWAYS_INLINE Quad HalvesOf(const BlockRows& rows, int at) {
  const Halves<4> halves = {HalfOf(rows.row[0] + at), HalfOf(rows.row[1] + at), HalfOf(rows.row[2] + at),
                            HalfOf(rows.row[3] + at)};
  return WidenF16<4>(halves);
}

BOWLINE_ALWAYS_INLINE Wide ForGroups(Quad q) {
  return __builtin_shufflevector(q, q, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3);
}

// Stores values of four groups: first the first group's values of all four rows, then the second's, and so on.
BOWLINE_ALWAYS_INLINE void StoreGroups(Wide values, Quad* groups) { __builtin_memcpy(groups, &values, sizeof(values)); }

template <typename Format>
BOWLINE_ALWAYS_INLINE void LoadScales(const BlockRows& rows, RowScales<Format>& scales) {
  if constexpr (Format::kFormat == ElementType::kQ4_K) {
    // The first 16 bytes are two halves, then three words with four 6-bit numbers each (BlockFormat documents them).
    const Quarter a = LoadFrom<Quarter>(rows.row[0]), b = LoadFrom<Quarter>(rows.row[1]),
                  c = LoadFrom<Quarter>(rows.row[2]), d = LoadFrom<Quarter>(rows.row[3]);
    const Quarter ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5),
                  ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7),
                  cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5),
                  cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    using Word = uint32_t __attribute__((ext_vector_type(4)));
    const auto halves = __builtin_bit_cast(Halves<8>, __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5));
    const auto first = __builtin_bit_cast(Word, __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7)),
               second = __builtin_bit_cast(Word, __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5)),
               third = __builtin_bit_cast(Word, __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7));
    const auto wide = WidenF16<8>(halves);
    const Wide scale = ForGroups(__builtin_shufflevector(wide, wide, 0, 2, 4, 6)),
               minimum = ForGroups(-__builtin_shufflevector(wide, wide, 1, 3, 5, 7));
    const auto numbers = [](Word word) __attribute__((always_inline)) {
      const Bits<16> shifts = {0, 0, 0, 0, 8, 8, 8, 8, 16, 16, 16, 16, 24, 24, 24, 24};
      const Bits<16> all = __builtin_shufflevector(word, word, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3);
      return __builtin_convertvector(__builtin_bit_cast(WideInts, (all >> shifts) & 0xffu), Wide);
    };
    constexpr uint32_t kSix = 0x3f3f3f3fu, kFour = 0x0f0f0f0fu, kTwo = 0x30303030u;
    StoreGroups(numbers(first & kSix) * scale, scales.scale);
    StoreGroups(numbers((third & kFour) | ((first >> 2) & kTwo)) * scale, scales.scale + 4);
    StoreGroups(numbers(second & kSix) * minimum, scales.offset);
    StoreGroups(numbers(((third >> 4) & kFour) | ((second >> 2) & kTwo)) * minimum, scales.offset + 4);
  } else if constexpr (Format::kFormat == ElementType::kQ6_K) {
    const Wide scale = ForGroups(HalvesOf(rows, 208));
    const auto a = LoadFrom<QuarterBytes>(rows.row[0] + 192), b = LoadFrom<QuarterBytes>(rows.row[1] + 192),
               c = LoadFrom<QuarterBytes>(rows.row[2] + 192), d = LoadFrom<QuarterBytes>(rows.row[3] + 192);
    using Pairs = uint16_t __attribute__((ext_vector_type(8)));
    const auto low = [](QuarterBytes x, QuarterBytes y) __attribute__((always_inline)) {
      return __builtin_bit_cast(Pairs,
                                __builtin_shufflevector(x, y, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23));
    };
    const auto high = [](QuarterBytes x, QuarterBytes y) __attribute__((always_inline)) {
      return __builtin_bit_cast(
          Pairs, __builtin_shufflevector(x, y, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31));
    };
    const Pairs ab[2] = {low(a, b), high(a, b)}, cd[2] = {low(c, d), high(c, d)};
#pragma clang loop unroll(full)
    for (int j = 0; j < 2; ++j) {
      using Signed = int8_t __attribute__((ext_vector_type(16)));
      const auto first = __builtin_bit_cast(Signed, __builtin_shufflevector(ab[j], cd[j], 0, 8, 1, 9, 2, 10, 3, 11)),
                 second = __builtin_bit_cast(Signed, __builtin_shufflevector(ab[j], cd[j], 4, 12, 5, 13, 6, 14, 7, 15));
      StoreGroups(__builtin_convertvector(first, Wide) * scale, scales.scale + 8 * j);
      StoreGroups(__builtin_convertvector(second, Wide) * scale, scales.scale + 8 * j + 4);
    }
  } else if constexpr (Format::kHasOffset) {
    static_assert(Format::kFormat == ElementType::kQ4_1);
    const Quarter both = {LoadFrom<int32_t>(rows.row[0]), LoadFrom<int32_t>(rows.row[1]),
                          LoadFrom<int32_t>(rows.row[2]), LoadFrom<int32_t>(rows.row[3])};
    const auto wide = WidenF16<8>(__builtin_bit_cast(Halves<8>, both));
    scales.scale[0] = __builtin_shufflevector(wide, wide, 0, 2, 4, 6);
    scales.offset[0] = __builtin_shufflevector(wide, wide, 1, 3, 5, 7);
  } else {
    scales.scale[0] = HalvesOf(rows, 0);
  }
}

}  // namespace bowline::kernels::BOWLINE_ISA

#endif  // BOWLINE_KERNELS_CPU_QUANTIZED_INTEGER_BLOCKS_H_
