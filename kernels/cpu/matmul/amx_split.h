#ifndef BOWLINE_KERNELS_CPU_MATMUL_AMX_SPLIT_H_
#define BOWLINE_KERNELS_CPU_MATMUL_AMX_SPLIT_H_

// f32 as the sum of three numbers of bf16, after G. Henry, P. T. P. Tang and A. Heinecke, "Leveraging the bfloat16
// Artificial Intelligence Datatype For Higher-Precision Computations", ARITH 2019:
//   x = x1 + x2 + x3
// x1 is x rounded to its 8 leading bits, x2 is x - x1 rounded likewise, and x3 is x - x1 - x2, which fits into bf16.
// The sum is exact except for bits of x below 2^-126, because tiles treat smaller numbers as zero. If x is infinite or
// NaN, x1 is x, and x2 and x3 are zero. Only for files compiled for AMX.

#include "kernels/cpu/matmul/blocks.h"
#include "kernels/cpu/matmul/operand.h"
#include "kernels/cpu/matmul/pack.h"

namespace bowline::kernels::BOWLINE_ISA {

inline constexpr int kPlanes = 3;

class SplitBlocks {
 public:
  static constexpr int64_t kExtent = 16, kSteps = 32, kPlaneWords = 256;

  // Packs one block: up to 16 rows of A or columns of B, and up to 32 steps of k; the rest is zero. For each plane,
  // `packed` gets 16 rows of 16 words, and a word is two steps of k. Row i is row i of A; or with kAcross it is steps
  // 2 i and 2 i + 1 of 16 columns of B.
  template <bool kAcross>
  static void Pack(int64_t extent, int64_t steps, const float* from, int64_t stride, int64_t stride_k, float* packed) {
    if (extent < kExtent || steps < kSteps || (stride != 1 && stride_k != 1)) {
      float copy[kExtent * kSteps] = {};
      for (int64_t i = 0; i < Smaller(extent, kExtent); ++i) {
        for (int64_t s = 0; s < Smaller(steps, kSteps); ++s) copy[i * kSteps + s] = from[i * stride + s * stride_k];
      }
      PackAlong<kAcross>(copy, kSteps, packed);
    } else if (stride_k == 1) {
      PackAlong<kAcross>(from, stride, packed);
    } else {
      PackAcross<kAcross>(from, stride_k, packed);
    }
  }

  // Joins the planes again: the value of the earlier or the `later` of the two steps in word `word` of a block.
  static float Join(const float* block, int64_t word, bool later) {
    float sum = 0.0f;
    for (int p = kPlanes - 1; p >= 0; --p) {
      uint32_t bits;
      __builtin_memcpy(&bits, block + p * kPlaneWords + word, sizeof(bits));
      sum = __builtin_bit_cast(float, later ? bits& kUpper : bits << 16) + sum;
    }
    return sum;
  }

 private:
  using Ints = Bits<kLanes>;
  static_assert(kLanes == 16);

  struct Parts {
    Ints plane[kPlanes];  // bf16 in the upper halves; the lower halves are not used
  };

  static constexpr uint32_t kUpper = 0xffff0000u, kSign = 0x80000000u, kInfinity = 0x7f800000u, kRoundsUp = 0x7f7f8000u;

  BOWLINE_ALWAYS_INLINE Vec AsFloat(Ints bits) { return __builtin_bit_cast(Vec, bits); }
  BOWLINE_ALWAYS_INLINE Ints AsBits(Vec x) { return __builtin_bit_cast(Ints, x); }
  BOWLINE_ALWAYS_INLINE bool Any(Ints lanes) { return __builtin_reduce_max(lanes) != 0; }

  // Splits finite numbers that do not round to infinity. Ties round away from zero: as exact, with fewer instructions.
  BOWLINE_ALWAYS_INLINE Parts SplitOrdinary(Vec x) {
    Parts parts;
    parts.plane[0] = (AsBits(x) + 0x8000u) & kUpper;
    const Vec rest = x - AsFloat(parts.plane[0]);
    parts.plane[1] = (AsBits(rest) + 0x8000u) & kUpper;
    parts.plane[2] = AsBits(rest - AsFloat(parts.plane[1])) & kUpper;
    return parts;
  }

  // Splits any number. Truncates a number that would round to infinity. A NaN stays a NaN.
  static Parts SplitAny(Vec x) {
    Parts parts;
    for (int p = 0; p < kPlanes; ++p) {
      const Ints bits = AsBits(x), magnitude = bits & ~kSign,
                 quiet = magnitude > kInfinity ? Ints(0x400000u) : Ints(0u);
      parts.plane[p] = magnitude >= kRoundsUp ? (bits & kUpper) | quiet : (bits + 0x8000u) & kUpper;
      x = magnitude >= kInfinity ? Vec(0.0f) : x - AsFloat(parts.plane[p]);
    }
    return parts;
  }

  BOWLINE_ALWAYS_INLINE void Split(Vec x, Vec y, Parts& of_x, Parts& of_y) {
    const Ints a = AsBits(x) & ~kSign, b = AsBits(y) & ~kSign, larger = a > b ? a : b;
    if (__builtin_expect(Any(larger >= kRoundsUp ? Ints(1u) : Ints(0u)), 0)) {
      of_x = SplitAny(x);
      of_y = SplitAny(y);
      return;
    }
    of_x = SplitOrdinary(x);
    of_y = SplitOrdinary(y);
  }

  template <int... kHalf>
  BOWLINE_ALWAYS_INLINE Vec UpperHalves(Ints x, Ints y, IndexList<kHalf...>) {
    using AllHalves = Halves<2 * kLanes>;
    return __builtin_bit_cast(Vec, __builtin_shufflevector(__builtin_bit_cast(AllHalves, x),
                                                           __builtin_bit_cast(AllHalves, y), (2 * kHalf + 1)...));
  }

  // Packs 16 rows of 32 steps, each contiguous in k.
  template <bool kAcross>
  static void PackAlong(const float* from, int64_t stride, float* packed) {
    Vec rows[kPlanes][kExtent];
#pragma clang loop unroll(full)
    for (int i = 0; i < kExtent; ++i) {
      Parts x, y;
      Split(Load(from + i * stride), Load(from + i * stride + kLanes), x, y);
#pragma clang loop unroll(full)
      for (int p = 0; p < kPlanes; ++p) {
        const Vec row = UpperHalves(x.plane[p], y.plane[p], Indices<2 * kLanes>());
        if constexpr (kAcross) {
          rows[p][i] = row;
        } else {
          Store(packed + p * kPlaneWords + i * kExtent, row);
        }
      }
    }
    if constexpr (kAcross) StoreTransposed(rows, packed);
  }

  // Packs 32 steps of k, each of 16 contiguous neighbours.
  template <bool kAcross>
  static void PackAcross(const float* from, int64_t stride_k, float* packed) {
    Vec rows[kPlanes][kExtent];
#pragma clang loop unroll(full)
    for (int s = 0; s < kExtent; ++s) {
      Parts x, y;
      const float* at = from + 2 * s * stride_k;
      Split(Load(at), Load(at + stride_k), x, y);
#pragma clang loop unroll(full)
      for (int p = 0; p < kPlanes; ++p) {
        const Vec row = AsFloat(x.plane[p] >> 16 | y.plane[p]);
        if constexpr (kAcross) {
          Store(packed + p * kPlaneWords + s * kExtent, row);
        } else {
          rows[p][s] = row;
        }
      }
    }
    if constexpr (!kAcross) StoreTransposed(rows, packed);
  }

  static void StoreTransposed(Vec (&rows)[kPlanes][kExtent], float* packed) {
    for (int p = 0; p < kPlanes; ++p) {
      Words<kExtent> block[kExtent];
#pragma clang loop unroll(full)
      for (int i = 0; i < kExtent; ++i) block[i] = __builtin_bit_cast(Words<kExtent>, rows[p][i]);
      Transpose<kExtent>(block);
#pragma clang loop unroll(full)
      for (int i = 0; i < kExtent; ++i) Store(packed + p * kPlaneWords + i * kExtent, block[i]);
    }
  }
};

}  // namespace bowline::kernels::BOWLINE_ISA

#endif  // BOWLINE_KERNELS_CPU_MATMUL_AMX_SPLIT_H_
