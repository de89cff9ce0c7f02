#ifndef BOWLINE_KERNELS_CPU_MATMUL_AMX_TILE_H_
#define BOWLINE_KERNELS_CPU_MATMUL_AMX_TILE_H_

// Tiles of C in AMX's registers: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, chapter 18;
// volume 2, TDPBF16PS. A register has 16 rows of 16 words. Those of B are 16 words of k of 16 columns, as in a panel;
// of A, 16 rows of 16 words of k, as in memory where k is contiguous. Only for files compiled for AMX.

#include "kernels/cpu/isa/amx_registers.h"
#include "kernels/cpu/matmul/gemm.h"
#include "kernels/cpu/matmul/operand.h"
#include "kernels/cpu/matmul/pack.h"
#include "kernels/cpu/matmul/tile.h"

namespace bowline::kernels::BOWLINE_ISA {

// Blocks of a product in the processor's tile registers; product.h says what its members are.
class AmxTiles {
 public:
  using Operand = Bf16Operand;
  // Multiply computes a strip of C, two by two registers at a time. It takes as many steps of k at once as leave its
  // rows of A in the first-level cache; columns of B come from the second level, by loads that do not put them into the
  // first.
  static constexpr int64_t kTileM = 32, kPanelColumns = kTileN, kStripN = 4 * kTileN, kTileColumns = kStripN,
                           kStepColumns = 32, kBlockM = 16 * kTileM, kScratchWords = kTileM * kStripN, kPadWords = 16,
                           kSteps = Operand::kStepsPerWord;
  static constexpr bool kReadsB = false, kWritesVectors = false;

  AmxTiles() = default;
  AmxTiles(const AmxTiles&) = delete;
  AmxTiles& operator=(const AmxTiles&) = delete;
  // Releases the tile registers: the system has less to save and restore when it switches threads, and other users of
  // tiles find none in use.
  ~AmxTiles() {
    if (rows_ > 0) __builtin_ia32_tilerelease();
    // Nothing else orders non-temporal stores, not the barrier that says that a thread is done.
    if (streams_) __builtin_ia32_sfence();
  }

  static bool ReadsA(const GemmShape& shape) {
    // Rows a multiple of 1 KiB apart share few sets of the first-level cache: a copy is worth it for enough columns.
    constexpr int64_t kFewSets = 512, kManyColumns = 512;
    return shape.a_k == 1 && shape.k % (2 * kWords) == 0 && (shape.a_m % kFewSets != 0 || shape.n < kManyColumns);
  }

  static void PackA(int64_t rows, int64_t steps, const uint16_t* a, int64_t stride_m, int64_t stride_k, float* dst) {
    const int64_t groups = CeilDiv(steps, 2 * kWords);
    for (int64_t i = 0; i < rows; i += kRows) {
      for (int64_t g = 0; g < groups; ++g, dst += kRows * kWords) {
        const uint16_t* from = a + i * stride_m + 2 * kWords * g * stride_k;
        PackGroup(rows - i < kRows ? rows - i : kRows, steps - 2 * kWords * g, from, stride_m, stride_k, dst);
      }
    }
  }

  void Multiply(int64_t rows, int64_t columns, int64_t words, const TileOfA<uint16_t>& a, const Panels& panels,
                int64_t column, const TileOfC& c, Prefetcher& prefetcher, float* scratch) {
    if (rows != rows_) Configure(rows);
    // Registers are stored to what is in a cache, and C is written once. What is there is added last, wherever it is,
    // so that bits do not depend on that.
    const bool in_place = c.is_scratch && !c.accumulate;
    float* const sums = in_place ? c.out : scratch;
    const int64_t ld = in_place ? c.ld : kStripN, groups = CeilDiv(words, kWords);
    const int64_t block = EqualBlocks(words, kMostWords);
    for (int64_t w = 0; w < words; w += block) {
      Streams streams = StreamsOfA(a, w, groups);
      streams.groups = CeilDiv(Smaller(words - w, block), kWords);
      for (int64_t j = 0; j < columns; j += kStepColumns) {
        prefetcher.Step();
        streams.b0 = BAt(panels, w, column + j);
        streams.b1 = BAt(panels, w, column + j + kColumns);
        Multiply(rows > kRows, columns - j > kColumns, streams, sums + j, ld * 4, /*accumulate=*/w > 0);
      }
    }
    if (!in_place) Finish(rows, columns, sums, c);
  }

 private:
  static constexpr int64_t kMostWords = 256;
  static constexpr int64_t kRows = 16, kColumns = 16, kWords = 16, kRowBytes = 64, kRegisterBytes = kRows * kRowBytes;
  static_assert(kWords == kTileWords && kTileN % kColumns == 0);

  // Distances are in bytes; those of A are from one group of words to the next, from a row to the next, and from the
  // first 16 rows to the next.
  struct Streams {
    const char* a;
    int64_t a_group, a_row, a_rows;
    const char *b0, *b1;
    int64_t groups;
  };

  // Registers 0 to 3 are C, row by row, 4 and 5 A, 6 and 7 B.
  void Configure(int64_t rows) {
    const auto first = static_cast<uint8_t>(rows < kRows ? rows : kRows);
    const auto second = static_cast<uint8_t>(rows > kRows ? rows - kRows : 1);
    AmxConfiguration c;
    c.rows[0] = c.rows[1] = c.rows[4] = first;
    c.rows[2] = c.rows[3] = c.rows[5] = second;
    c.Load();
    rows_ = rows;
  }

  static Streams StreamsOfA(const TileOfA<uint16_t>& a, int64_t word, int64_t groups) {
    if (a.in_place != nullptr) {
      const int64_t row = a.stride * 2;
      return {reinterpret_cast<const char*>(a.in_place + 2 * word), kRowBytes, row, kRows * row, nullptr, nullptr, 0};
    }
    return {reinterpret_cast<const char*>(a.packed + word * kRows),
            kRegisterBytes,
            kRowBytes,
            groups * kRegisterBytes,
            nullptr,
            nullptr,
            0};
  }

  static const char* BAt(const Panels& panels, int64_t word, int64_t column) {
    const float* panel = panels.first + column / kTileN * panels.words;
    return reinterpret_cast<const char*>(panel + word * kTileN + column % kTileN);
  }

  static void Multiply(bool second_rows, bool second_columns, const Streams& streams, float* out, int64_t c_stride,
                       bool accumulate) {
    if (second_rows) {
      second_columns ? Run<2, 2>(streams, out, c_stride, accumulate) : Run<2, 1>(streams, out, c_stride, accumulate);
    } else {
      second_columns ? Run<1, 2>(streams, out, c_stride, accumulate) : Run<1, 1>(streams, out, c_stride, accumulate);
    }
  }

  // C (+)= sums
  void Finish(int64_t rows, int64_t columns, const float* sums, const TileOfC& c) {
    if (c.accumulate) {
      Finish(rows, columns, sums, c, [](float* to, Vec sum) { Store(to, Load(to) + sum); });
    } else if (c.is_streamed && reinterpret_cast<uintptr_t>(c.out) % kRowBytes == 0 && c.ld % kLanes == 0) {
      Finish(rows, columns, sums, c,
             [](float* to, Vec sum) { __builtin_nontemporal_store(sum, reinterpret_cast<Vec*>(to)); });
      streams_ = true;
    } else {
      Finish(rows, columns, sums, c, [](float* to, Vec sum) { Store(to, sum); });
    }
  }
  template <typename Write>
  static void Finish(int64_t rows, int64_t columns, const float* sums, const TileOfC& c, Write write) {
    for (int64_t i = 0; i < rows; ++i) {
      const float* from = sums + i * kStripN;
      float* to = c.out + i * c.ld;
      int64_t j = 0;
      for (; j + kLanes <= columns; j += kLanes) write(to + j, Load(from + j));
      for (; j < columns; ++j) to[j] = c.accumulate ? to[j] + from[j] : from[j];
    }
  }

  template <int kRowRegisters, int kColumnRegisters>
  static void Run(const Streams& s, float* out, int64_t c_stride, bool accumulate) {
    constexpr bool kSecondRows = kRowRegisters == 2, kSecondColumns = kColumnRegisters == 2;
    constexpr int64_t kBRow = kTileN * 4, kBGroup = kWords * kBRow;
    float* const below = out + kRows * (c_stride / 4);
    if (accumulate) {
      __builtin_ia32_tileloadd64(0, out, c_stride);
      if constexpr (kSecondColumns) __builtin_ia32_tileloadd64(1, out + kColumns, c_stride);
      if constexpr (kSecondRows) __builtin_ia32_tileloadd64(2, below, c_stride);
      if constexpr (kSecondRows && kSecondColumns) __builtin_ia32_tileloadd64(3, below + kColumns, c_stride);
    } else {
      __builtin_ia32_tilezero(0);
      __builtin_ia32_tilezero(1);
      __builtin_ia32_tilezero(2);
      __builtin_ia32_tilezero(3);
    }
    const char *a = s.a, *b0 = s.b0, *b1 = s.b1;
    for (int64_t g = 0; g < s.groups; ++g, a += s.a_group, b0 += kBGroup, b1 += kBGroup) {
      __builtin_ia32_tileloaddt164(6, b0, kBRow);
      __builtin_ia32_tileloadd64(4, a, s.a_row);
      __builtin_ia32_tdpbf16ps(0, 4, 6);
      if constexpr (kSecondColumns) {
        __builtin_ia32_tileloaddt164(7, b1, kBRow);
        __builtin_ia32_tdpbf16ps(1, 4, 7);
      }
      if constexpr (kSecondRows) {
        __builtin_ia32_tileloadd64(5, a + s.a_rows, s.a_row);
        __builtin_ia32_tdpbf16ps(2, 5, 6);
        if constexpr (kSecondColumns) __builtin_ia32_tdpbf16ps(3, 5, 7);
      }
    }
    __builtin_ia32_tilestored64(0, out, c_stride);
    if constexpr (kSecondColumns) __builtin_ia32_tilestored64(1, out + kColumns, c_stride);
    if constexpr (kSecondRows) __builtin_ia32_tilestored64(2, below, c_stride);
    if constexpr (kSecondRows && kSecondColumns) __builtin_ia32_tilestored64(3, below + kColumns, c_stride);
  }

  // 16 words of up to 16 rows, zeros behind the last of `steps`; rows that are not there are not written.
  static void PackGroup(int64_t rows, int64_t steps, const uint16_t* a, int64_t stride_m, int64_t stride_k,
                        float* dst) {
    if (steps >= 2 * kWords && stride_k == 1) {
      for (int64_t i = 0; i < rows; ++i) {
        Store(dst + i * kWords, Operand::template AlongSteps<kWords>(a + i * stride_m));
      }
    } else if (steps >= 2 * kWords && stride_m == 1 && rows == kRows) {
      Words<kWords> columns[kWords];
#pragma clang loop unroll(full)
      for (int s = 0; s < kWords; ++s) {
        const uint16_t* from = a + 2 * s * stride_k;
        // The next group's steps: each is a stream of its own.
        __builtin_prefetch(from + 2 * kWords * stride_k, 0, kPrefetchTo);
        __builtin_prefetch(from + (2 * kWords + 1) * stride_k, 0, kPrefetchTo);
        columns[s] = Operand::template Across<kRows>(from, stride_k);
      }
      Transpose<kWords>(columns);
#pragma clang loop unroll(full)
      for (int i = 0; i < kRows; ++i) Store(dst + i * kWords, columns[i]);
    } else {
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t w = 0; w < kWords; ++w) {
          const uint16_t* from = a + i * stride_m + 2 * w * stride_k;
          dst[i * kWords + w] = 2 * w + 1 < steps    ? Operand::One(from, stride_k)
                                : 2 * w + 1 == steps ? Operand::OneHalf(from)
                                                     : 0.0f;
        }
      }
    }
  }

  bool streams_ = false;
  int64_t rows_ = 0;  // rows that the registers are configured for; 0: they are not configured
};

}  // namespace bowline::kernels::BOWLINE_ISA

#endif  // BOWLINE_KERNELS_CPU_MATMUL_AMX_TILE_H_
