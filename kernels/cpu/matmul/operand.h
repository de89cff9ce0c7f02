#ifndef BOWLINE_KERNELS_CPU_MATMUL_OPERAND_H_
#define BOWLINE_KERNELS_CPU_MATMUL_OPERAND_H_

// Converts elements of A and B to the words that a tile multiplies. A word has 4 bytes, a lane of a vector of float. It
// holds one step of k, or two steps if the machine multiplies pairs of bf16.

#include "kernels/cpu/isa/half_vectors.h"
#include "kernels/cpu/isa/simd.h"

namespace bowline::kernels::BOWLINE_ISA {

template <int... kIndex>
struct IndexList {};
template <typename T, T... kIndex>
struct IndexSequence {
  using List = IndexList<kIndex...>;
};
template <int kN>
using Indices = typename __make_integer_seq<IndexSequence, int, kN>::List;  // 0 to kN - 1

template <int kN>
BOWLINE_ALWAYS_INLINE Halves<kN> LoadNarrow(const uint16_t* p) {
  Halves<kN> v;
  __builtin_memcpy(&v, p, sizeof(v));
  return v;
}
template <int kN>
BOWLINE_ALWAYS_INLINE Bits<kN> LoadHalves(const uint16_t* p) {
  return __builtin_convertvector(LoadNarrow<kN>(p), Bits<kN>);
}

// An operand has
//   Source, kStepsPerWord      the type of an element in memory, and the steps of k in a word
//   kWordsInMemory             whether consecutive steps that are contiguous in memory already form words
//   AlongSteps<kN>(p)          kN words of consecutive steps, which are contiguous from p on
//   Across<kN>(p, step)        one word of each of kN neighbours; the word's steps are at p and, if two, p + step
//   AcrossHalf<kN>(p)          the same if k ends after the word's first step: the second step is zero
//   One(p, step), OneHalf(p)   Across and AcrossHalf of a single element
//   MultiplyAdd(a, b, c)       c + a * b, of words; Value(source): the element's value in f32
struct F32Operand {
  using Source = float;
  static constexpr int kStepsPerWord = 1;
  static constexpr bool kWordsInMemory = true;

  template <int kN>
  BOWLINE_ALWAYS_INLINE Words<kN> AlongSteps(const float* p) {
    return LoadAs<Words<kN>>(p);
  }
  template <int kN>
  BOWLINE_ALWAYS_INLINE Words<kN> Across(const float* p, int64_t) {
    return LoadAs<Words<kN>>(p);
  }
  template <int kN>
  BOWLINE_ALWAYS_INLINE Words<kN> AcrossHalf(const float* p) {
    return LoadAs<Words<kN>>(p);
  }
  BOWLINE_ALWAYS_INLINE float One(const float* p, int64_t) { return *p; }
  BOWLINE_ALWAYS_INLINE float OneHalf(const float* p) { return *p; }
  BOWLINE_ALWAYS_INLINE Vec MultiplyAdd(Vec a, Vec b, Vec c) { return MulAdd(a, b, c); }
  BOWLINE_ALWAYS_INLINE float Value(float source) { return source; }
};

// Elements of 16 bits, widened to f32 when packed. `Widening` has Load<kN>(p) and Value(source), which return f32.
template <typename Widening>
struct WidenedOperand {
  using Source = uint16_t;
  static constexpr int kStepsPerWord = 1;
  static constexpr bool kWordsInMemory = false;

  template <int kN>
  BOWLINE_ALWAYS_INLINE Words<kN> AlongSteps(const uint16_t* p) {
    return Widening::template Load<kN>(p);
  }
  template <int kN>
  BOWLINE_ALWAYS_INLINE Words<kN> Across(const uint16_t* p, int64_t) {
    return AlongSteps<kN>(p);
  }
  template <int kN>
  BOWLINE_ALWAYS_INLINE Words<kN> AcrossHalf(const uint16_t* p) {
    return AlongSteps<kN>(p);
  }
  BOWLINE_ALWAYS_INLINE float One(const uint16_t* p, int64_t) { return Value(*p); }
  BOWLINE_ALWAYS_INLINE float OneHalf(const uint16_t* p) { return Value(*p); }
  BOWLINE_ALWAYS_INLINE Vec MultiplyAdd(Vec a, Vec b, Vec c) { return MulAdd(a, b, c); }
  BOWLINE_ALWAYS_INLINE float Value(uint16_t source) { return Widening::Value(source); }
};

struct WideningF16 {
  template <int kN>
  BOWLINE_ALWAYS_INLINE Words<kN> Load(const uint16_t* p) {
    return WidenF16<kN>(LoadNarrow<kN>(p));
  }
  BOWLINE_ALWAYS_INLINE float Value(uint16_t source) { return WidenF16(source); }
};
using F16Operand = WidenedOperand<WideningF16>;

#if defined(__AVX512BF16__)
// Pairs of steps for vdpbf16ps, the earlier one in the low half.
struct Bf16Operand {
  using Source = uint16_t;
  static constexpr int kStepsPerWord = 2;
  static constexpr bool kWordsInMemory = true;

  template <int kN>
  BOWLINE_ALWAYS_INLINE Words<kN> AlongSteps(const uint16_t* p) {
    Words<kN> v;
    __builtin_memcpy(&v, p, sizeof(v));
    return v;
  }
  template <int kN>
  BOWLINE_ALWAYS_INLINE Words<kN> Across(const uint16_t* p, int64_t step) {
    return __builtin_bit_cast(Words<kN>, LoadHalves<kN>(p) | LoadHalves<kN>(p + step) << 16);
  }
  template <int kN>
  BOWLINE_ALWAYS_INLINE Words<kN> AcrossHalf(const uint16_t* p) {
    return __builtin_bit_cast(Words<kN>, LoadHalves<kN>(p));
  }
  BOWLINE_ALWAYS_INLINE float One(const uint16_t* p, int64_t step) {
    return __builtin_bit_cast(float, uint32_t{p[0]} | uint32_t{p[step]} << 16);
  }
  BOWLINE_ALWAYS_INLINE float OneHalf(const uint16_t* p) { return __builtin_bit_cast(float, uint32_t{*p}); }
  BOWLINE_ALWAYS_INLINE Vec MultiplyAdd(Vec a, Vec b, Vec c) {
    using Pairs = __bf16 __attribute__((__vector_size__(64)));
    using Sums = float __attribute__((__vector_size__(64)));
    return (Vec)__builtin_ia32_dpbf16ps_512((Sums)c, (Pairs)a, (Pairs)b);
  }
  BOWLINE_ALWAYS_INLINE float Value(uint16_t source) { return __builtin_bit_cast(float, uint32_t{source} << 16); }
};
#else
struct WideningBf16 {
  template <int kN>
  BOWLINE_ALWAYS_INLINE Words<kN> Load(const uint16_t* p) {
    return __builtin_bit_cast(Words<kN>, LoadHalves<kN>(p) << 16);
  }
  BOWLINE_ALWAYS_INLINE float Value(uint16_t source) { return __builtin_bit_cast(float, uint32_t{source} << 16); }
};
using Bf16Operand = WidenedOperand<WideningBf16>;
#endif

// Rounds to the nearest bf16, ties to even; a NaN stays a NaN.
BOWLINE_ALWAYS_INLINE uint16_t RoundToBf16(float value) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, value);
  if (value != value) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

}  // namespace bowline::kernels::BOWLINE_ISA

#endif  // BOWLINE_KERNELS_CPU_MATMUL_OPERAND_H_
