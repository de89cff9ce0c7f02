#ifndef BOWLINE_KERNELS_CPU_MATMUL_PACK_H_
#define BOWLINE_KERNELS_CPU_MATMUL_PACK_H_

// Copies a block of an operand into panels, so that a tile reads consecutive memory. Only for *_isa.cc files.

#include "kernels/cpu/matmul/blocks.h"
#include "kernels/cpu/matmul/operand.h"

namespace bowline::kernels::BOWLINE_ISA {

// Swaps the off-diagonal kD x kD blocks of every 2 kD x 2 kD block. Doing so for all powers kD < kN transposes `rows`.
template <int kN, int kD, int... kLane>
BOWLINE_ALWAYS_INLINE void SwapBlocks(Words<kN> (&rows)[kN], IndexList<kLane...>) {
#pragma clang loop unroll(full)
  for (int i = 0; i < kN; ++i) {
    if (i & kD) continue;
    const Words<kN> a = rows[i], b = rows[i + kD];
    rows[i] = __builtin_shufflevector(a, b, ((kLane & kD) == 0 ? kLane : kN + kLane - kD)...);
    rows[i + kD] = __builtin_shufflevector(a, b, ((kLane & kD) == 0 ? kLane + kD : kN + kLane)...);
  }
}
template <int kN, int kD = kN / 2>
BOWLINE_ALWAYS_INLINE void Transpose(Words<kN> (&rows)[kN]) {
  if constexpr (kD > 0) {
    SwapBlocks<kN, kD>(rows, Indices<kN>());
    Transpose<kN, kD / 2>(rows);
  }
}

// Packing reads many short streams, which hardware prefetchers do not foresee, so the code prefetches.
constexpr int kPrefetchTo = 2;  // locality of __builtin_prefetch: to the second-level cache

// Writes kN rows, each contiguous in k, as columns of a panel: word s of row i goes to dst[s * kWidth + i].
template <typename Operand, int kN, int kWidth>
static void PackTransposed(int64_t words, const typename Operand::Source* src, int64_t outer_stride, float* dst) {
  int64_t s = 0;
  for (; s + kN <= words; s += kN) {
    Words<kN> rows[kN];
#pragma clang loop unroll(full)
    for (int i = 0; i < kN; ++i) {
      const typename Operand::Source* p = src + i * outer_stride + s * Operand::kStepsPerWord;
      __builtin_prefetch(p + kN * outer_stride, 0, kPrefetchTo);  // the same steps of the next rows
      rows[i] = Operand::template AlongSteps<kN>(p);
    }
    Transpose<kN>(rows);
#pragma clang loop unroll(full)
    for (int i = 0; i < kN; ++i) Store(dst + (s + i) * kWidth, rows[i]);
  }
  for (; s < words; ++s) {
#pragma clang loop vectorize(disable)
    for (int i = 0; i < kN; ++i) {
      dst[s * kWidth + i] = Operand::One(src + i * outer_stride + s * Operand::kStepsPerWord, 1);
    }
  }
}

// Packs `extent` outer elements (rows of A or columns of B) into panels of kWidth. Row s of panel p holds word s of
// outer elements p * kWidth + [0, kWidth), and zeros beyond `extent`. `dst` has room for ceil(extent / kWidth) panels
// of kWidth * panel_rows words. panel_rows is at least ceil(steps / kStepsPerWord); rows beyond that are zeros.
template <typename Operand, int kWidth>
static void Pack(int64_t extent, int64_t steps, const typename Operand::Source* src, int64_t outer_stride,
                 int64_t step_stride, float* dst, int64_t panel_rows) {
  constexpr int kN = kWidth % kLanes == 0 ? kLanes : kWidth;  // one vector, one transposed block
  constexpr int kSteps = Operand::kStepsPerWord;
  const int64_t words = steps / kSteps, all_words = CeilDiv(steps, kSteps);
  const int64_t panels = extent / kWidth, panel_words = panel_rows * kWidth;
  const typename Operand::Source* last = src + words * kSteps * step_stride;  // the half word if `steps` is odd
  if (outer_stride == 1) {
    // A few steps of every panel at a time, so that rows of the source are read in long contiguous pieces.
    constexpr int64_t kGroup = 8;
    for (int64_t s0 = 0; s0 < words; s0 += kGroup) {
      const int64_t s1 = s0 + kGroup < words ? s0 + kGroup : words;
      for (int64_t p = 0; p < panels; ++p) {
        for (int64_t s = s0; s < s1; ++s) {
#pragma clang loop unroll(full)
          for (int w = 0; w < kWidth; w += kN) {
            const typename Operand::Source* from = src + s * kSteps * step_stride + p * kWidth + w;
            const typename Operand::Source* next = from + kGroup * kSteps * step_stride;
            __builtin_prefetch(next, 0, kPrefetchTo);
            if constexpr (kSteps == 2) __builtin_prefetch(next + step_stride, 0, kPrefetchTo);
            Store(dst + p * panel_words + s * kWidth + w, Operand::template Across<kN>(from, step_stride));
          }
        }
      }
    }
  } else if (step_stride == 1) {
    for (int64_t p = 0; p < panels; ++p) {
      for (int w = 0; w < kWidth; w += kN) {
        PackTransposed<Operand, kN, kWidth>(words, src + (p * kWidth + w) * outer_stride, outer_stride,
                                            dst + p * panel_words + w);
      }
    }
  } else {
    for (int64_t p = 0; p < panels; ++p) {
      for (int64_t s = 0; s < words; ++s) {
        for (int64_t w = 0; w < kWidth; ++w) {
          dst[p * panel_words + s * kWidth + w] =
              Operand::One(src + (p * kWidth + w) * outer_stride + s * kSteps * step_stride, step_stride);
        }
      }
    }
  }
  if (all_words > words) {
    for (int64_t i = 0; i < panels * kWidth; ++i) {
      dst[i / kWidth * panel_words + words * kWidth + i % kWidth] = Operand::OneHalf(last + i * outer_stride);
    }
  }
  for (int64_t p = 0; p < CeilDiv(extent, kWidth); ++p) {
    for (int64_t i = all_words * kWidth; i < panel_words; ++i) dst[p * panel_words + i] = 0.0f;
  }
  if (panels * kWidth == extent) return;
  float* rest = dst + panels * panel_words;
  for (int64_t s = 0; s < all_words; ++s) {
    for (int64_t w = 0; w < kWidth; ++w) {
      const int64_t outer = panels * kWidth + w;
      float word = 0.0f;
      if (outer < extent) {
        const typename Operand::Source* p = src + outer * outer_stride + s * kSteps * step_stride;
        word = s < words ? Operand::One(p, step_stride) : Operand::OneHalf(p);
      }
      rest[s * kWidth + w] = word;
    }
  }
}

}  // namespace bowline::kernels::BOWLINE_ISA

#endif  // BOWLINE_KERNELS_CPU_MATMUL_PACK_H_
