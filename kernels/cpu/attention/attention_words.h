#ifndef BOWLINE_KERNELS_CPU_ATTENTION_ATTENTION_WORDS_H_
#define BOWLINE_KERNELS_CPU_ATTENTION_ATTENTION_WORDS_H_

// The words of blocks of tensors of type T, as products of OperandOf<T> take them. A word is an f32, to which narrower
// elements are widened, or an unchanged pair of bf16 if the machine multiplies such pairs. The functions for pairs
// exist only for such machines. Only for *_isa.cc files.

#include "kernels/cpu/attention/attention_pack.h"

namespace bowline::kernels::BOWLINE_ISA {

template <typename T>
struct OperandFor {
  using Type = F32Operand;
};
#if defined(__AVX512BF16__)
template <>
struct OperandFor<Bf16> {
  using Type = Bf16Operand;
};

// 2^x with a relative error below 1.5e-7; a subnormal result is rounded once more. With x = n + r, 0 <= r < 1: 2^r is
// the polynomial of degree 5 with the least relative error, 9e-8, that is 1 at 0; an instruction scales it by 2^n.
BOWLINE_ALWAYS_INLINE Vec Exp2(Vec x) {
  using Sixteen = float __attribute__((__vector_size__(64)));
  constexpr int kFromFloor = 9, kEvery = -1, kCurrentRounding = 4;
  const Vec r = (Vec)__builtin_ia32_reduceps512_mask((Sixteen)x, kFromFloor, (Sixteen)x, kEvery, kCurrentRounding);
  Vec p = Vec(0.0018671300495043397f);
  p = MulAdd(p, r, Vec(0.009017030708491802f));
  p = MulAdd(p, r, Vec(0.05579991266131401f));
  p = MulAdd(p, r, Vec(0.24016444385051727f));
  p = MulAdd(p, r, Vec(0.6931512951850891f));
  p = MulAdd(p, r, Vec(1.0f));
  return (Vec)__builtin_ia32_scalefps512_mask((Sixteen)p, (Sixteen)x, (Sixteen)p, kEvery, kCurrentRounding);
}
#endif

template <typename T>
using OperandOf = typename OperandFor<T>::Type;
template <typename T>
inline constexpr int kStepsOf = OperandOf<T>::kStepsPerWord;
template <typename T>
inline constexpr bool kPairs = kStepsOf<T> == 2;

// The `Words` argument of AttentionBuffers (attention_scratch.h) for tensors of T.
template <typename T>
struct WordsOf {
  static constexpr int64_t kLanes = BOWLINE_ISA::kLanes, kSteps = kStepsOf<T>;
  static constexpr bool kWide = sizeof(T) == sizeof(float);
};
template <typename T>
using BuffersOf = AttentionBuffers<WordsOf<T>>;
inline constexpr int64_t kBlockQ = BuffersOf<float>::kBlockQ;

// Packs `rows` rows of `source` into strips [word of head_dim][kStrip rows]. Multiplies single elements by `scale`, but
// not pairs, which would have to be rounded again: Scaled and Exponential scale their products instead.
template <typename T>
static void PackStrips(int64_t rows, int64_t head_dim, const T* source, int64_t stride, float scale, float* strips) {
  const int64_t words = CeilDiv(head_dim, kStepsOf<T>);
  for (int64_t i = 0; i < rows; i += kStrip, strips += words * kStrip, source += kStrip * stride) {
    if constexpr (kPairs<T>) {
      TransposeRows(
          Smaller(rows - i, kStrip), words,
          [&](int64_t row, int64_t w, int64_t) __attribute__((always_inline)) {
            Vec part = Vec(0.0f);
            const int64_t terms = Smaller(2 * kLanes, head_dim - 2 * w);
            __builtin_memcpy(&part, source + row * stride + 2 * w,
                             terms == 2 * kLanes ? sizeof(part) : static_cast<size_t>(terms) * sizeof(T));
            return part;
          },
          strips);
    } else {
      PackStrip(Smaller(rows - i, kStrip), head_dim, source, stride, scale, strips);
    }
  }
}

// The scaled product of packed queries and keys. Multiplies by `scale` only if PackStrips did not.
template <typename T>
BOWLINE_ALWAYS_INLINE Vec Scaled(Vec product, float scale) {
  return kPairs<T> ? product * scale : product;
}
// 2^(scaled product - reference).
template <typename T>
BOWLINE_ALWAYS_INLINE Vec Exponential(Vec product, [[maybe_unused]] float scale, Vec reference) {
#if defined(__AVX512BF16__)
  if constexpr (kPairs<T>) return Exp2(MulAdd(product, Vec(scale), -reference));
#endif
  return Exp2NonPositive(product - reference);
}

// Rows whose words are along head_dim. Returns `source` itself if its elements already form such words; else copies the
// rows to `buffer`, which has room for AttentionBuffers::Along floats.
template <typename T>
static Matrix RowsAlong(int64_t rows, int64_t head_dim, const T* source, int64_t stride, float* buffer) {
  if constexpr (kPairs<T>) {
    if (head_dim % 2 == 0) return {reinterpret_cast<const float*>(source), stride / 2};
    const int64_t words = CeilDiv(head_dim, 2);
    for (int64_t i = 0; i < rows; ++i) {
      __builtin_memcpy(buffer + i * words, source + i * stride, static_cast<size_t>(head_dim) * sizeof(T));
      buffer[i * words + words - 1] = OperandOf<T>::OneHalf(&source[i * stride + head_dim - 1].bits);
    }
    return {buffer, words};
  } else {
    return WideRows(rows, head_dim, source, stride, buffer);
  }
}

// Stores 2 kLanes pairs: element i of row `low`, in the low half, with element i of row `high`.
template <int... kLane>
BOWLINE_ALWAYS_INLINE void StoreInterleaved(const uint16_t* low, const uint16_t* high, float* pairs,
                                            IndexList<kLane...>) {
  Halves<2 * kLanes> a, b;
  __builtin_memcpy(&a, low, sizeof(a));
  __builtin_memcpy(&b, high, sizeof(b));
  Store(pairs, __builtin_bit_cast(Vec, __builtin_shufflevector(a, b, (kLane / 2 + kLane % 2 * 2 * kLanes)...)));
  Store(pairs + kLanes,
        __builtin_bit_cast(Vec, __builtin_shufflevector(a, b, (kLanes + kLane / 2 + kLane % 2 * 2 * kLanes)...)));
}

// Packs panels of `width` elements of a row. Panel p holds, for every two rows, the pairs of their elements from
// p * width on. Elements beyond head_dim, and a row after the last one, are zeros.
template <typename T>
static void PackRowPairs(int64_t rows, int64_t head_dim, const T* source, int64_t stride, int64_t width,
                         float* panels) {
  using Operand = OperandOf<T>;
  for (int64_t first = 0; first < head_dim; first += width) {
    const int64_t columns = Smaller(head_dim - first, width);
    for (int64_t i = 0; i < rows; i += 2, panels += width) {
      const auto* from = &source[i * stride + first].bits;
      const bool both = i + 1 < rows;
      int64_t d = 0;
      for (; both && d + 2 * kLanes <= columns; d += 2 * kLanes) {
        StoreInterleaved(from + d, from + stride + d, panels + d, Indices<2 * kLanes>());
      }
      for (; d + kLanes <= columns; d += kLanes) {
        Store(panels + d, both ? Operand::template Across<kLanes>(from + d, stride)
                               : Operand::template AcrossHalf<kLanes>(from + d));
      }
      for (; d < width; ++d) {
        panels[d] = d >= columns ? 0.0f : both ? Operand::One(from + d, stride) : Operand::OneHalf(from + d);
      }
    }
  }
}

// Rows whose words are across rows: word d of a result row holds element d of kStepsOf<T> rows of `source`. Returns
// `source` itself for f32; else writes to `buffer`, which has room for AttentionBuffers::Across floats.
template <typename T>
static Matrix RowsAcross(int64_t rows, int64_t head_dim, const T* source, int64_t stride, float* buffer) {
  if constexpr (kPairs<T>) {
    const int64_t width = RoundUp(head_dim, kLanes);
    PackRowPairs(rows, head_dim, source, stride, width, buffer);
    return {buffer, width};
  } else {
    return WideRows(rows, head_dim, source, stride, buffer);
  }
}

// Packs panels of kStrip elements, whose words are across rows of `source`.
template <typename T>
static void PackPanels(int64_t rows, int64_t head_dim, const T* source, int64_t stride, float* panels) {
  if constexpr (kPairs<T>) {
    PackRowPairs(rows, head_dim, source, stride, kStrip, panels);
  } else {
    PackPanelsOfRows(rows, head_dim, source, stride, panels);
  }
}

// Joins consecutive terms, one or two, to a vector of words. Rounds two terms to a pair of bf16.
BOWLINE_ALWAYS_INLINE Vec Join(const Vec (&terms)[1]) { return terms[0]; }
#if defined(__AVX512BF16__)
using RoundedHalves = __bf16 __attribute__((__vector_size__(64)));
// Rounds to bf16, `low` to halves 0 to 15 and `high` to 16 to 31. Subnormal numbers become zero.
BOWLINE_ALWAYS_INLINE RoundedHalves RoundTwo(Vec low, Vec high) {
  using Sums = float __attribute__((__vector_size__(64)));
  return __builtin_ia32_cvtne2ps2bf16_512((Sums)high, (Sums)low);
}
template <int... kLane>
BOWLINE_ALWAYS_INLINE Vec Interleave(RoundedHalves halves, IndexList<kLane...>) {
  return __builtin_bit_cast(Vec, __builtin_shufflevector(halves, halves, (kLane % 2 * kLanes + kLane / 2)...));
}
BOWLINE_ALWAYS_INLINE Vec Join(const Vec (&terms)[2]) {
  return Interleave(RoundTwo(terms[0], terms[1]), Indices<2 * kLanes>());
}

// Stores every two rows as a row of pairs. Rows of pairs are ld words apart; an odd last row is paired with zeros.
template <int kRows, int kVectors>
BOWLINE_ALWAYS_INLINE void StoreRowPairs(float* pairs, int64_t ld, const Vec (&rows)[kRows][kVectors]) {
#pragma clang loop unroll(full)
  for (int i = 0; i < kRows; i += 2) {
#pragma clang loop unroll(full)
    for (int n = 0; n < kVectors; ++n) {
      const Vec two[2] = {rows[i][n], i + 1 < kRows ? rows[i + 1 < kRows ? i + 1 : i][n] : Vec(0.0f)};
      Store(pairs + i / 2 * ld + n * kLanes, Join(two));
    }
  }
}
#endif

// Stores consecutive terms of a row, from term `at` on, in a block whose words are along rows.
template <typename T, int kVectors>
BOWLINE_ALWAYS_INLINE void StoreTerms(float* block, int64_t at, const Vec (&terms)[kVectors]) {
  if constexpr (kPairs<T>) {
    const auto halves = RoundTwo(terms[0], terms[kVectors - 1]);
    __builtin_memcpy(reinterpret_cast<T*>(block) + at, &halves, kVectors * kLanes * sizeof(T));
  } else {
#pragma clang loop unroll(full)
    for (int n = 0; n < kVectors; ++n) Store(block + at + n * kLanes, terms[n]);
  }
}

}  // namespace bowline::kernels::BOWLINE_ISA

#endif  // BOWLINE_KERNELS_CPU_ATTENTION_ATTENTION_WORDS_H_
