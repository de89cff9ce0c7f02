#ifndef BOWLINE_KERNELS_CPU_MATMUL_AMX_SPLIT_TILE_H_
#define BOWLINE_KERNELS_CPU_MATMUL_AMX_SPLIT_TILE_H_

// Products of f32 by six products of bf16 in AMX's tiles (amx_split.h): of
//   a b = a1 b1 + a1 b2 + a2 b1 + a2 b2 + a1 b3 + a3 b1 + ...
// what is left out is at most 2^-23 of |a b|. Only for files compiled for AMX.

#include "kernels/cpu/isa/amx_registers.h"
#include "kernels/cpu/matmul/amx_split.h"
#include "kernels/cpu/matmul/gemm_scratch.h"
#include "kernels/cpu/matmul/prefetch.h"
#include "kernels/cpu/matmul/tile.h"

namespace bowline::kernels::BOWLINE_ISA {

// amx_product.h says what its members are.
class AmxSplitTiles {
 public:
  using Source = float;
  struct Sizes : AmxF32Sizes {};
  static constexpr bool kReadsPackedMatrices = false;

  // Blocks of 16 rows and 32 steps, which follow each other; bit i of `special`: block i has infinities or NaNs.
  struct Rows {
    const float* first;
    uint64_t special;
  };
  struct Columns {
    const float* first;
    uint64_t special;
    int64_t steps;
  };

  AmxSplitTiles() = default;
  AmxSplitTiles(const AmxSplitTiles&) = delete;
  AmxSplitTiles& operator=(const AmxSplitTiles&) = delete;
  // As AmxTiles does.
  ~AmxSplitTiles() {
    if (rows_ > 0) __builtin_ia32_tilerelease();
  }

  void PackA(int64_t rows, int64_t steps, const float* a, int64_t stride_m, int64_t stride_k, float* packed) {
    special_a_ = PackBlocks<false>(rows, steps, a, stride_m, stride_k, packed);
  }
  void PackB(int64_t columns, int64_t steps, const float* b, int64_t stride_k, int64_t stride_n, float* packed) {
    special_b_ = PackBlocks<true>(columns, steps, b, stride_n, stride_k, packed);
  }
  // Of a packed matrix: panels of kTileN columns.
  Columns PackPanels(int64_t columns, int64_t steps, const float* panels, float* packed) {
    special_b_ = 0;
    for (int64_t j = 0; j < columns; j += kTileN) {
      special_b_ |= PackBlocks<true>(Smaller(columns - j, kTileN), steps, panels + j * steps, 1, kTileN,
                                     packed + j * PackedRow(steps))
                    << (j / kExtent);
    }
    return PackedColumns(packed, steps);
  }
  Rows PackedRows(const float* packed, int64_t row, int64_t steps) const {
    return {packed + row * PackedRow(steps), special_a_ >> (row / kExtent)};
  }
  static Rows RowsInPlace(const float*, int64_t) { return {}; }
  Columns PackedColumns(const float* packed, int64_t steps) const { return {packed, special_b_, steps}; }

  static int64_t PrefetchSteps(int64_t columns, int64_t steps) {
    return CeilDiv(columns, 2 * kExtent) * CeilDiv(steps, kSteps);
  }

  // As AmxTiles does.
  void Multiply(int64_t rows, int64_t columns, int64_t steps, const Rows& a, const Columns& b, float* sums, int64_t ld,
                Prefetcher& prefetcher) {
    if (rows != rows_) Configure(rows);
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
    if ((a.special & 3) != 0 || b.special != 0) MultiplySpecialBlocks(rows, columns, steps, a, b, sums, ld);
  }

 private:
  static constexpr int64_t kExtent = SplitBlocks::kExtent, kSteps = SplitBlocks::kSteps,
                           kPlaneWords = SplitBlocks::kPlaneWords, kGroupWords = kPlanes * kPlaneWords, kMostGroups = 4;
  static constexpr int64_t kRowBytes = 64;
  static_assert(Sizes::kSpanM <= 64 * kExtent && Sizes::kStripN <= 64 * kExtent && kTileN % kExtent == 0);
  static_assert(Sizes::kPlanes == kPlanes && Sizes::kTileM == 2 * kExtent);

  // 16 rows of A to the next, and 16 columns of B, are `next` words apart.
  struct Streams {
    const float *a, *b;
    int64_t next, groups;
  };

  // Registers as in AmxTiles.
  void Configure(int64_t rows) {
    AmxConfiguration c;
    c.rows[0] = c.rows[1] = c.rows[4] = static_cast<uint8_t>(Smaller(rows, kExtent));
    c.rows[2] = c.rows[3] = c.rows[5] = static_cast<uint8_t>(rows > kExtent ? rows - kExtent : 1);
    c.Load();
    rows_ = rows;
  }

  // Words of a row of packed A, or of a column of packed B.
  static int64_t PackedRow(int64_t steps) { return RoundUp(steps, kSteps) / 2 * kPlanes; }

  template <bool kAcross>
  static uint64_t PackBlocks(int64_t extent, int64_t steps, const float* from, int64_t stride, int64_t stride_k,
                             float* packed) {
    uint64_t special = 0;
    for (int64_t i = 0; i < extent; i += kExtent) {
      for (int64_t s = 0; s < steps; s += kSteps, packed += kGroupWords) {
        const uint64_t is_special = SplitBlocks::Pack<kAcross>(extent - i, steps - s, from + i * stride + s * stride_k,
                                                               stride, stride_k, packed);
        special |= is_special << (i / kExtent);
      }
    }
    return special;
  }

  // Neighbouring products share an operand, and those of small numbers come first.
  template <int kRowRegisters, int kColumnRegisters>
  static void Run(const Streams& s, float* out, int64_t c_stride, bool accumulate, Prefetcher& prefetcher) {
    constexpr bool kSecondRows = kRowRegisters == 2, kSecondColumns = kColumnRegisters == 2;
    float* const below = out + kExtent * (c_stride / 4);
    if (accumulate) {
      __builtin_ia32_tileloadd64(0, out, c_stride);
      if constexpr (kSecondColumns) __builtin_ia32_tileloadd64(1, out + kExtent, c_stride);
      if constexpr (kSecondRows) __builtin_ia32_tileloadd64(2, below, c_stride);
      if constexpr (kSecondRows && kSecondColumns) __builtin_ia32_tileloadd64(3, below + kExtent, c_stride);
    } else {
      __builtin_ia32_tilezero(0);
      __builtin_ia32_tilezero(1);
      __builtin_ia32_tilezero(2);
      __builtin_ia32_tilezero(3);
    }
    // Copies, which the compiler keeps in registers.
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
    __builtin_ia32_tilestored64(0, out, c_stride);
    if constexpr (kSecondColumns) __builtin_ia32_tilestored64(1, out + kExtent, c_stride);
    if constexpr (kSecondRows) __builtin_ia32_tilestored64(2, below, c_stride);
    if constexpr (kSecondRows && kSecondColumns) __builtin_ia32_tilestored64(3, below + kExtent, c_stride);
  }

  static void MultiplySpecialBlocks(int64_t rows, int64_t columns, int64_t steps, const Rows& a, const Columns& b,
                                    float* sums, int64_t ld) {
    const int64_t block = CeilDiv(steps, kSteps) * kGroupWords;
    for (int64_t i = 0; i < CeilDiv(rows, kExtent); ++i) {
      for (int64_t j = 0; j < CeilDiv(columns, kExtent); ++j) {
        if (((a.special >> i | b.special >> j) & 1) == 0) continue;
        MultiplySpecial(Smaller(rows - i * kExtent, kExtent), steps, a.first + i * block, b.first + j * block,
                        sums + i * kExtent * ld + j * kExtent, ld);
      }
    }
  }

  // An infinity times a plane of zeros would be no number: these elements are summed in f32.
  static void MultiplySpecial(int64_t rows, int64_t steps, const float* a, const float* b, float* sums, int64_t ld) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < kExtent; ++j) sums[i * ld + j] = 0.0f;
    }
    for (int64_t s = 0; s < steps; ++s) {
      const float *a_block = a + s / kSteps * kGroupWords, *b_block = b + s / kSteps * kGroupWords;
      float row[kExtent];
      for (int64_t j = 0; j < kExtent; ++j)
        row[j] = SplitBlocks::Join(b_block, s % kSteps / 2 * kExtent + j, s % 2 == 1);
      for (int64_t i = 0; i < rows; ++i) {
        const float x = SplitBlocks::Join(a_block, i * kExtent + s % kSteps / 2, s % 2 == 1);
        for (int64_t j = 0; j < kExtent; ++j) sums[i * ld + j] += x * row[j];
      }
    }
  }

  uint64_t special_a_ = 0, special_b_ = 0;
  int64_t rows_ = 0;  // that the registers are configured for; 0: they are not
};

}  // namespace bowline::kernels::BOWLINE_ISA

#endif  // BOWLINE_KERNELS_CPU_MATMUL_AMX_SPLIT_TILE_H_
