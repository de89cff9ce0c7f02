#ifndef BOWLINE_KERNELS_CPU_MATMUL_AMX_TILE_H_
#define BOWLINE_KERNELS_CPU_MATMUL_AMX_TILE_H_

// Tiles of C in AMX's registers: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, chapter 18;
// volume 2, TDPBF16PS. A register has 16 rows of 16 words (pairs of bf16). A register of B holds 16 words of k of 16
// columns, as a panel does; one of A, 16 rows of 16 contiguous words of k. Only for files compiled for AMX.

#include "kernels/cpu/matmul/amx_pack.h"
#include "kernels/cpu/matmul/amx_sums.h"
#include "kernels/cpu/matmul/gemm_scratch.h"
#include "kernels/cpu/matmul/operand.h"
#include "kernels/cpu/matmul/prefetch.h"
#include "kernels/cpu/matmul/tile.h"

namespace bowline::kernels::BOWLINE_ISA {

// The tiles of products of bf16, a `Tiles` argument of AmxProduct. amx_product.h documents the members.
class AmxTiles {
 public:
  using Source = uint16_t;
  struct Sizes : AmxBf16Sizes {};
  static constexpr bool kReadsPackedMatrices = true;

  // Where Multiply finds rows of A, as words of k. Distances are in bytes: `group` from 16 words of a row to the next
  // 16, `row` from a row to the next, `rows` from the first 16 rows to the next 16.
  struct Rows {
    const char* first;
    int64_t group, row, rows;
  };

  using Columns = Panels;

  static void PackA(int64_t rows, int64_t steps, const Source* a, int64_t stride_m, int64_t stride_k, float* packed) {
    AmxRows::Pack(rows, steps, a, stride_m, stride_k, packed);
  }
  static Rows PackedRows(const float* packed, int64_t row, int64_t steps) {
    const int64_t words = RoundUp(steps, 2 * kWords) / 2;
    return {reinterpret_cast<const char*>(packed + row * words), kRegisterBytes, kRowBytes, kRowBytes * words};
  }
  static Rows RowsInPlace(const Source* a, int64_t stride) {
    return {reinterpret_cast<const char*>(a), kRowBytes, stride * 2, kRows * stride * 2};
  }
  static void PackB(int64_t columns, int64_t steps, const Source* b, int64_t stride_k, int64_t stride_n,
                    float* packed) {
    Pack<Bf16Operand, kTileN>(columns, steps, b, stride_n, stride_k, packed, RoundUp(steps, 2 * kWords) / 2);
  }
  static Columns PackedColumns(const float* packed, int64_t steps) {
    return {packed, RoundUp(steps, 2 * kWords) / 2 * kTileN};
  }

  static int64_t PrefetchSteps(int64_t columns, int64_t steps) {
    return CeilDiv(columns, 2 * kColumns) * CeilDiv(steps, 2 * kWords);
  }

  // Computes blocks of two by two registers. Splits the steps into blocks of at most kMostWords words, so that the rows
  // of A stay in the first-level cache. Loads B with tileloaddt1, which does not fill that cache.
  void Multiply(int64_t rows, int64_t columns, int64_t steps, const Rows& a, const Columns& b, float* sums, int64_t ld,
                Prefetcher& prefetcher) {
    sums_.Configure(rows);
    const int64_t words = CeilDiv(steps, 2);
    const int64_t block = EqualBlocks(words, kMostWords);
    for (int64_t w = 0; w < words; w += block) {
      const char* first = a.first + w / kWords * a.group;
      const int64_t groups = CeilDiv(Smaller(words - w, block), kWords);
      for (int64_t j = 0; j < columns; j += 2 * kColumns) {
        const Streams streams = {{first, a.group, a.row, a.rows}, At(b, w, j), At(b, w, j + kColumns), groups};
        const bool accumulate = w > 0;
        if (rows > kRows) {
          columns - j > kColumns ? Run<2, 2>(streams, sums + j, ld * 4, accumulate, prefetcher)
                                 : Run<2, 1>(streams, sums + j, ld * 4, accumulate, prefetcher);
        } else {
          columns - j > kColumns ? Run<1, 2>(streams, sums + j, ld * 4, accumulate, prefetcher)
                                 : Run<1, 1>(streams, sums + j, ld * 4, accumulate, prefetcher);
        }
      }
    }
  }

  static constexpr int64_t kRows = 16, kColumns = 16, kWords = 16, kRowBytes = 64, kRegisterBytes = kRows * kRowBytes;

 private:
  static constexpr int64_t kMostWords = 256;
  static_assert(kWords == kTileWords && kTileN % kColumns == 0);

  struct Streams {
    Rows a;
    const char *b0, *b1;
    int64_t groups;
  };

  static const char* At(const Panels& panels, int64_t word, int64_t column) {
    const float* panel = panels.first + column / kTileN * panels.words;
    return reinterpret_cast<const char*>(panel + word * kTileN + column % kTileN);
  }

  template <int kRowRegisters, int kColumnRegisters>
  static void Run(const Streams& s, float* out, int64_t c_stride, bool accumulate, Prefetcher& prefetcher) {
    constexpr bool kSecondRows = kRowRegisters == 2, kSecondColumns = kColumnRegisters == 2;
    constexpr int64_t kBRow = kTileN * 4, kBGroup = kWords * kBRow;
    AmxSums::Load<kSecondRows, kSecondColumns>(out, c_stride, accumulate);
    // Local copies, so that the compiler keeps them in registers.
    const char *a = s.a.first, *b0 = s.b0, *b1 = s.b1;
    const int64_t groups = s.groups, a_group = s.a.group, a_row = s.a.row, a_rows = s.a.rows;
    Prefetcher prefetch = prefetcher;
    for (int64_t g = 0; g < groups; ++g, a += a_group, b0 += kBGroup, b1 += kBGroup) {
      __builtin_ia32_tileloaddt164(6, b0, kBRow);
      __builtin_ia32_tileloadd64(4, a, a_row);
      __builtin_ia32_tdpbf16ps(0, 4, 6);
      if constexpr (kSecondColumns) {
        __builtin_ia32_tileloaddt164(7, b1, kBRow);
        __builtin_ia32_tdpbf16ps(1, 4, 7);
      }
      if constexpr (kSecondRows) {
        __builtin_ia32_tileloadd64(5, a + a_rows, a_row);
        __builtin_ia32_tdpbf16ps(2, 5, 6);
        if constexpr (kSecondColumns) __builtin_ia32_tdpbf16ps(3, 5, 7);
      }
      prefetch.Step();
    }
    prefetcher = prefetch;
    AmxSums::Store<kSecondRows, kSecondColumns>(out, c_stride);
  }

  AmxSums sums_;
};

}  // namespace bowline::kernels::BOWLINE_ISA

#endif  // BOWLINE_KERNELS_CPU_MATMUL_AMX_TILE_H_
