#ifndef BOWLINE_KERNELS_CPU_QUANTIZED_INTEGER_ROWS_H_
#define BOWLINE_KERNELS_CPU_QUANTIZED_INTEGER_ROWS_H_

// Rounds rows of x to the records of integer_products.h. Only for *_isa.cc files.

#include "kernels/cpu/isa/simd.h"
#include "kernels/cpu/quantized/integer_products.h"
#include "kernels/cpu/quantized/wide_vectors.h"

namespace bowline::kernels::BOWLINE_ISA {

inline constexpr float kMostInteger = 32767.0f;

using Lanes8 = int32_t __attribute__((ext_vector_type(8)));
using Lanes4 = int32_t __attribute__((ext_vector_type(4)));
using Integers = int16_t __attribute__((ext_vector_type(16)));

// Rounds a group of x to a record. Returns false, with zeros as integers, if the largest |x| is neither zero nor in
// [2^-100, 2^64). Within these bounds, scales and sums neither underflow nor overflow.
template <typename Format>
BOWLINE_ALWAYS_INLINE bool RoundGroup(const float* x, uint8_t* record) {
  using Record = IntegerRecord<Format>;
  constexpr int kRuns = Format::kRunsOfGroup;
  static_assert(kWideLanes == kRunElements);
  constexpr int32_t kLeast = (127 - 100) << 23, kBeyond = (127 + 64) << 23;
  WideInts largest = 0;
#pragma clang loop unroll(full)
  for (int j = 0; j < kRuns; ++j) {
    // As integers, magnitudes have the same order as numbers, and NaNs are the largest.
    const WideInts bits = __builtin_bit_cast(WideInts, LoadAs<Wide>(x + j * kWideLanes)) & 0x7fffffff;
    largest = __builtin_elementwise_max(largest, bits);
  }
  const int32_t bits = __builtin_reduce_max(largest);
  const bool in_range = bits >= kLeast && bits < kBeyond;
  const float magnitude = __builtin_bit_cast(float, bits);
  const float inverse = in_range ? kMostInteger / magnitude : 0.0f;
  const float scale = in_range ? magnitude / kMostInteger : 0.0f;
  Lanes8 pairs = 0;
#pragma clang loop unroll(full)
  for (int j = 0; j < kRuns; ++j) {
    WideInts q = 0;
    if (in_range) {
      q = __builtin_convertvector(__builtin_elementwise_roundeven(LoadAs<Wide>(x + j * kWideLanes) * inverse),
                                  WideInts);
    }
    const WideInts ordered = __builtin_shufflevector(q, q, 0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
    const Integers narrow = __builtin_convertvector(ordered, Integers);
    __builtin_memcpy(record + j * sizeof(narrow), &narrow, sizeof(narrow));
    pairs += __builtin_shufflevector(ordered, ordered, 0, 1, 2, 3, 4, 5, 6, 7) +
             __builtin_shufflevector(ordered, ordered, 8, 9, 10, 11, 12, 13, 14, 15);
  }
  const Lanes4 sums =
      __builtin_shufflevector(pairs, pairs, 0, 2, 4, 6) + __builtin_shufflevector(pairs, pairs, 1, 3, 5, 7);
  const float total = static_cast<float>(__builtin_reduce_add(sums)) * scale;
  __builtin_memcpy(record + Record::kTotal, &total, sizeof(total));
  if constexpr (Format::kHasOffset) {
    const Quad values = __builtin_convertvector(sums, Quad) * scale;
    __builtin_memcpy(record + Record::kSums, &values, sizeof(values));
  } else {
    const Lanes4 bias = sums * -Format::kBias;
    __builtin_memcpy(record + Record::kSums, &bias, sizeof(bias));
  }
  __builtin_memcpy(record + Record::kScale, &scale, sizeof(scale));
  return in_range || bits == 0;
}

template <typename Format>
bool RoundRow(const float* x, int64_t k, int64_t group_bytes, uint8_t* records) {
  bool all = true;
  for (int64_t k0 = 0; k0 < k; k0 += IntegerRecord<Format>::kElements, records += group_bytes) {
    all &= RoundGroup<Format>(x + k0, records);
  }
  return all;
}

}  // namespace bowline::kernels::BOWLINE_ISA

#endif  // BOWLINE_KERNELS_CPU_QUANTIZED_INTEGER_ROWS_H_
