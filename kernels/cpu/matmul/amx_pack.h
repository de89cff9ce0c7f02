#ifndef BOWLINE_KERNELS_CPU_MATMUL_AMX_PACK_H_
#define BOWLINE_KERNELS_CPU_MATMUL_AMX_PACK_H_

// Copies rows of A into the order in which AMX reads them. A block has 16 rows; for each 16 words of k it holds 16 rows
// of 16 words (a word is a pair of bf16, two steps of k). Only for files compiled for AMX.

#include "kernels/cpu/matmul/blocks.h"
#include "kernels/cpu/matmul/operand.h"
#include "kernels/cpu/matmul/pack.h"

namespace bowline::kernels::BOWLINE_ISA {

class AmxRows {
 public:
  // Packs `rows` rows of `steps` steps of k. Fills the last 16 words of a row up with zeros; writes no further rows.
  // `dst` has room for RoundUp(rows, 16) * kTileWords * ceil(steps / 32) words.
  static void Pack(int64_t rows, int64_t steps, const uint16_t* a, int64_t stride_m, int64_t stride_k, float* dst) {
    const int64_t groups = CeilDiv(steps, 2 * kTileWords);
    if (stride_m == 1) {
      // One group of k for all rows at a time, so that rows of the source are read in long contiguous pieces.
      for (int64_t g = 0; g < groups; ++g) PackGroups(rows, steps, groups, g, g + 1, a, stride_m, stride_k, dst);
    } else {
      PackGroups(rows, steps, groups, 0, groups, a, stride_m, stride_k, dst);
    }
  }

 private:
  static constexpr int64_t kRows = 16;

  static void PackGroups(int64_t rows, int64_t steps, int64_t groups, int64_t begin, int64_t end, const uint16_t* a,
                         int64_t stride_m, int64_t stride_k, float* dst) {
    for (int64_t i = 0; i < rows; i += kRows) {
      for (int64_t g = begin; g < end; ++g) {
        PackGroup(Smaller(rows - i, kRows), steps - 2 * kTileWords * g,
                  a + i * stride_m + 2 * kTileWords * g * stride_k, stride_m, stride_k,
                  dst + (i * groups + kRows * g) * kTileWords);
      }
    }
  }

  static void PackGroup(int64_t rows, int64_t steps, const uint16_t* a, int64_t stride_m, int64_t stride_k,
                        float* dst) {
    if (steps >= 2 * kTileWords && stride_k == 1) {
      for (int64_t i = 0; i < rows; ++i) {
        Store(dst + i * kTileWords, Bf16Operand::AlongSteps<kTileWords>(a + i * stride_m));
      }
    } else if (steps >= 2 * kTileWords && stride_m == 1 && rows == kRows) {
      Words<kTileWords> columns[kTileWords];
#pragma clang loop unroll(full)
      for (int s = 0; s < kTileWords; ++s) {
        const uint16_t* from = a + 2 * s * stride_k;
        // Prefetches the same steps of later rows: the hardware does not follow so many streams, one per step.
        __builtin_prefetch(from + kAhead, 0, kPrefetchTo);
        __builtin_prefetch(from + kAhead + stride_k, 0, kPrefetchTo);
        columns[s] = Bf16Operand::Across<kRows>(from, stride_k);
      }
      Transpose<kTileWords>(columns);
#pragma clang loop unroll(full)
      for (int i = 0; i < kRows; ++i) Store(dst + i * kTileWords, columns[i]);
    } else {
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t w = 0; w < kTileWords; ++w) {
          const uint16_t* from = a + i * stride_m + 2 * w * stride_k;
          dst[i * kTileWords + w] = 2 * w + 1 < steps    ? Bf16Operand::One(from, stride_k)
                                    : 2 * w + 1 == steps ? Bf16Operand::OneHalf(from)
                                                         : 0.0f;
        }
      }
    }
  }

  static constexpr int64_t kAhead = 64;
};

}  // namespace bowline::kernels::BOWLINE_ISA

#endif  // BOWLINE_KERNELS_CPU_MATMUL_AMX_PACK_H_
