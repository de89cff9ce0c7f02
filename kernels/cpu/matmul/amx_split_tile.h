#ifndef BOWLINE_KERNELS_CPU_MATMUL_AMX_SPLIT_TILE_H_
#define BOWLINE_KERNELS_CPU_MATMUL_AMX_SPLIT_TILE_H_

// Products of f32 as six products of bf16 in AMX's tiles (amx_split.h): the six terms of
//   a b = a1 b1 + a1 b2 + a2 b1 + a2 b2 + a1 b3 + a3 b1 + ...
// The terms left out sum to at most 1.01 2^-24 of |a b|, because for x in [1, 2) |x2| is at most 2^-8 and |x3| 2^-17.
// gemm.h bounds the whole error. Only for files compiled for AMX.

#include "kernels/cpu/matmul/amx_split.h"
#include "kernels/cpu/matmul/amx_sums.h"
#include "kernels/cpu/matmul/gemm_scratch.h"
#include "kernels/cpu/matmul/prefetch.h"
#include "kernels/cpu/matmul/tile.h"

namespace bowline::kernels::BOWLINE_ISA {

// Tiles of products of f32, a `Tiles` argument of AmxProduct. amx_product.h documents the members.
class AmxSplitTiles {
 public:
  using Source = float;
  struct Sizes : AmxF32Sizes {};
  static constexpr bool kReadsPackedMatrices = false;

  // Where Multiply finds consecutive blocks of 16 rows or columns and 32 steps.
  struct Rows {
    const float* first;
  };
  struct Columns {
    const float* first;
  };

  static void PackA(int64_t rows, int64_t steps, const float* a, int64_t stride_m, int64_t stride_k, float* packed) {
    PackBlocks<false>(rows, steps, a, stride_m, stride_k, packed);
  }
  static void PackB(int64_t columns, int64_t steps, const float* b, int64_t stride_k, int64_t stride_n, float* packed) {
    PackBlocks<true>(columns, steps, b, stride_n, stride_k, packed);
  }
  // Packs columns of a packed matrix of f32, which lies in panels of kTileN columns.
  static Columns PackPanels(int64_t columns, int64_t steps, const float* panels, float* packed) {
    for (int64_t j = 0; j < columns; j += kTileN) {
      PackBlocks<true>(Smaller(columns - j, kTileN), steps, panels + j * steps, 1, kTileN,
                       packed + j * PackedRow(steps));
    }
    return PackedColumns(packed, steps);
  }
  static Rows PackedRows(const float* packed, int64_t row, int64_t steps) { return {packed + row * PackedRow(steps)}; }
  static Rows RowsInPlace(const float*, int64_t) { return {}; }
  static Columns PackedColumns(const float* packed, int64_t) { return {packed}; }

  static int64_t PrefetchSteps(int64_t columns, int64_t steps) {
    return CeilDiv(columns, 2 * kExtent) * CeilDiv(steps, kSteps);
  }

  // Like AmxTiles::Multiply. Afterwards computes elements again that came out infinite or NaN.
  void Multiply(int64_t rows, int64_t columns, int64_t steps, const Rows& a, const Columns& b, float* sums, int64_t ld,
                Prefetcher& prefetcher) {
    sums_.Configure(rows);
    const int64_t groups = CeilDiv(steps, kSteps), most = CeilDiv(groups, CeilDiv(groups, kMostGroups));
    for (int64_t g = 0; g < groups; g += most) {
      for (int64_t j = 0; j < columns; j += 2 * kExtent) {
        const Streams streams = {a.first + g * kGroupWords, b.first + (j / kExtent * groups + g) * kGroupWords,
                                 groups * kGroupWords, Smaller(groups - g, most)};
        if (rows > kExtent) {
          columns - j > kExtent ? Run<2, 2>(streams, sums + j, ld * 4, g > 0, prefetcher)
                                : Run<2, 1>(streams, sums + j, ld * 4, g > 0, prefetcher);
        } else {
          columns - j > kExtent ? Run<1, 2>(streams, sums + j, ld * 4, g > 0, prefetcher)
                                : Run<1, 1>(streams, sums + j, ld * 4, g > 0, prefetcher);
        }
      }
    }
    if (__builtin_expect(!AllFinite(rows, columns, sums, ld), 0)) {
      MultiplySpecialBlocks(rows, columns, steps, a, b, sums, ld);
    }
  }

 private:
  static constexpr int64_t kExtent = SplitBlocks::kExtent, kSteps = SplitBlocks::kSteps,
                           kPlaneWords = SplitBlocks::kPlaneWords, kGroupWords = kPlanes * kPlaneWords, kMostGroups = 4;
  static constexpr int64_t kRowBytes = 64;
  static_assert(kTileN % kExtent == 0);
  static_assert(Sizes::kPlanes == kPlanes && Sizes::kTileM == 2 * kExtent);

  // A stream has a block of 16 rows of A, or columns of B; the next 16 begin `next` words later.
  struct Streams {
    const float *a, *b;
    int64_t next, groups;
  };

  // Words of packed A per row, or of packed B per column.
  static int64_t PackedRow(int64_t steps) { return RoundUp(steps, kSteps) / 2 * kPlanes; }

  template <bool kAcross>
  static void PackBlocks(int64_t extent, int64_t steps, const float* from, int64_t stride, int64_t stride_k,
                         float* packed) {
    for (int64_t i = 0; i < extent; i += kExtent) {
      for (int64_t s = 0; s < steps; s += kSteps, packed += kGroupWords) {
        SplitBlocks::Pack<kAcross>(extent - i, steps - s, from + i * stride + s * stride_k, stride, stride_k, packed);
      }
    }
  }

  // Neighbouring products share an operand, and products of small planes are added first.
  template <int kRowRegisters, int kColumnRegisters>
  static void Run(const Streams& s, float* out, int64_t c_stride, bool accumulate, Prefetcher& prefetcher) {
    constexpr bool kSecondRows = kRowRegisters == 2, kSecondColumns = kColumnRegisters == 2;
    AmxSums::Load<kSecondRows, kSecondColumns>(out, c_stride, accumulate);
    // Local copies, so that the compiler keeps them in registers.
    const float *a = s.a, *b = s.b;
    const int64_t groups = s.groups, next = s.next;
    Prefetcher prefetch = prefetcher;
    const auto load_a = [&](int plane) __attribute__((always_inline)) {
      __builtin_ia32_tileloadd64(4, a + plane * kPlaneWords, kRowBytes);
      if constexpr (kSecondRows) __builtin_ia32_tileloadd64(5, a + next + plane * kPlaneWords, kRowBytes);
    };
    const auto load_b = [&](int plane) __attribute__((always_inline)) {
      __builtin_ia32_tileloaddt164(6, b + plane * kPlaneWords, kRowBytes);
      if constexpr (kSecondColumns) __builtin_ia32_tileloaddt164(7, b + next + plane * kPlaneWords, kRowBytes);
    };
    const auto multiply = []() __attribute__((always_inline)) {
      __builtin_ia32_tdpbf16ps(0, 4, 6);
      if constexpr (kSecondColumns) __builtin_ia32_tdpbf16ps(1, 4, 7);
      if constexpr (kSecondRows) __builtin_ia32_tdpbf16ps(2, 5, 6);
      if constexpr (kSecondRows && kSecondColumns) __builtin_ia32_tdpbf16ps(3, 5, 7);
    };
    for (int64_t g = 0; g < groups; ++g, a += kGroupWords, b += kGroupWords) {
      load_a(0);
      load_b(2);
      multiply();
      load_b(1);
      multiply();
      load_a(1);
      multiply();
      load_b(0);
      multiply();
      load_a(2);
      multiply();
      load_a(0);
      multiply();
      prefetch.Step();
    }
    prefetcher = prefetch;
    AmxSums::Store<kSecondRows, kSecondColumns>(out, c_stride);
  }

  // Computes elements that are not finite again in f32. Infinity times a plane of zeros is NaN. Sums of rounded
  // numbers, or of every second step, can overflow although the product does not.
  static void MultiplySpecialBlocks(int64_t rows, int64_t columns, int64_t steps, const Rows& a, const Columns& b,
                                    float* sums, int64_t ld) {
    const int64_t block = CeilDiv(steps, kSteps) * kGroupWords;
    for (int64_t i = 0; i < rows; i += kExtent) {
      const int64_t block_rows = Smaller(rows - i, kExtent);
      for (int64_t j = 0; j < columns; j += kExtent) {
        float* const to = sums + i * ld + j;
        if (AllFinite(block_rows, kExtent, to, ld)) continue;
        const float *rows_a = a.first + i / kExtent * block, *columns_b = b.first + j / kExtent * block;
        // Skips elements whose row or column has a NaN: they are NaN anyway, so a step that diverged stays fast.
        const Bits<kLanes> nan_rows = NansOfRows(steps, rows_a), nan_columns = NansOfColumns(steps, columns_b);
        const auto is_wanted = [&](int64_t r, int64_t c) {
          return !__builtin_isfinite(to[r * ld + c]) && nan_rows[r] == 0 && nan_columns[c] == 0;
        };
        bool any = false;
        for (int64_t r = 0; r < block_rows; ++r) {
          for (int64_t c = 0; c < kExtent; ++c) any |= is_wanted(r, c);
        }
        if (!any) continue;
        float plain[kExtent * kExtent];
        MultiplyPlain(block_rows, steps, rows_a, columns_b, plain);
        for (int64_t r = 0; r < block_rows; ++r) {
          for (int64_t c = 0; c < kExtent; ++c) {
            if (is_wanted(r, c)) to[r * ld + c] = plain[r * kExtent + c];
          }
        }
      }
    }
  }

  static constexpr uint32_t kMagnitude = 0x7fffffffu, kInfinity = 0x7f800000u;

  // The larger of the magnitudes of the two bf16 in each word, as bits of f32.
  BOWLINE_ALWAYS_INLINE Bits<kLanes> LargerHalf(const float* words) {
    const Bits<kLanes> bits = __builtin_bit_cast(Bits<kLanes>, Load(words));
    const Bits<kLanes> upper = bits & (kMagnitude & 0xffff0000u), lower = bits << 16 & kMagnitude;
    return upper > lower ? upper : lower;
  }

  // Lane r is not 0 if row r of a block of A has a NaN. The first plane alone shows it.
  static Bits<kLanes> NansOfRows(int64_t steps, const float* block) {
    Bits<kLanes> nans = {};
    for (int64_t r = 0; r < kExtent; ++r) {
      Bits<kLanes> largest = {};
      for (int64_t g = 0; g < CeilDiv(steps, kSteps); ++g) {
        const Bits<kLanes> half = LargerHalf(block + g * kGroupWords + r * kExtent);
        largest = half > largest ? half : largest;
      }
      nans[r] = __builtin_reduce_max(largest) > kInfinity ? 1 : 0;
    }
    return nans;
  }
  // The same of columns of a block of B.
  static Bits<kLanes> NansOfColumns(int64_t steps, const float* block) {
    Bits<kLanes> largest = {};
    for (int64_t g = 0; g < CeilDiv(steps, kSteps); ++g) {
      for (int64_t r = 0; r < kExtent; ++r) {
        const Bits<kLanes> half = LargerHalf(block + g * kGroupWords + r * kExtent);
        largest = half > largest ? half : largest;
      }
    }
    return largest > kInfinity ? Bits<kLanes>(1u) : Bits<kLanes>(0u);
  }

  static bool AllFinite(int64_t rows, int64_t columns, const float* sums, int64_t ld) {
    Bits<kLanes> largest = {};
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; j += kLanes) {
        const Bits<kLanes> magnitude = __builtin_bit_cast(Bits<kLanes>, Load(sums + i * ld + j)) & kMagnitude;
        largest = magnitude > largest ? magnitude : largest;
      }
    }
    return __builtin_reduce_max(largest) < kInfinity;
  }

  // Multiplies 16 columns in f32, step by step, from the joined planes.
  static void MultiplyPlain(int64_t rows, int64_t steps, const float* a, const float* b, float* sums) {
    for (int64_t i = 0; i < rows * kExtent; ++i) sums[i] = 0.0f;
    for (int64_t s = 0; s < steps; ++s) {
      const float *a_block = a + s / kSteps * kGroupWords, *b_block = b + s / kSteps * kGroupWords;
      float row[kExtent];
      for (int64_t j = 0; j < kExtent; ++j)
        row[j] = SplitBlocks::Join(b_block, s % kSteps / 2 * kExtent + j, s % 2 == 1);
      for (int64_t i = 0; i < rows; ++i) {
        const float x = SplitBlocks::Join(a_block, i * kExtent + s % kSteps / 2, s % 2 == 1);
        for (int64_t j = 0; j < kExtent; ++j) sums[i * kExtent + j] += x * row[j];
      }
    }
  }

  AmxSums sums_;
};

}  // namespace bowline::kernels::BOWLINE_ISA

#endif  // BOWLINE_KERNELS_CPU_MATMUL_AMX_SPLIT_TILE_H_
