#ifndef BOWLINE_KERNELS_CPU_ATTENTION_ATTENTION_AMX_PACK_H_
#define BOWLINE_KERNELS_CPU_ATTENTION_ATTENTION_AMX_PACK_H_

// Packs rows of queries, keys and values into AMX's registers of 1 KiB each. attention_amx_scratch.h documents the
// order. Only for files compiled for AMX.

#include "kernels/cpu/attention/attention_words.h"

namespace bowline::kernels::BOWLINE_ISA {

struct AmxOwner;  // the Owner argument of the templates in attention_amx_scratch.h

inline constexpr int64_t kRegisterHalves = 512;  // elements of bf16 in a register
using Half32 = Halves<32>;

// The first `count` elements, at most 32, then zeros. Does not read beyond `count`.
BOWLINE_ALWAYS_INLINE Half32 LoadFirst(const uint16_t* from, int64_t count) {
  using Shorts = short __attribute__((__vector_size__(64)));
  const uint32_t mask = count >= 32 ? ~0u : (1u << count) - 1;
  return __builtin_bit_cast(Half32,
                            __builtin_ia32_loaddquhi512_mask(reinterpret_cast<const Shorts*>(from), Shorts{}, mask));
}

// 32 elements of a row from `d` on. Without kWhole, zeros beyond head_dim, and if `is_row` is false all zeros.
template <bool kWhole>
BOWLINE_ALWAYS_INLINE Half32 LoadRow(const uint16_t* source, int64_t row, int64_t stride, int64_t d, int64_t head_dim,
                                     bool is_row) {
  if constexpr (kWhole) {
    return LoadNarrow<32>(source + row * stride + d);
  }
  return is_row ? LoadFirst(source + row * stride + d, head_dim - d) : Half32(0);
}

// Packs 16 rows as registers of A: for each 32 elements of head_dim a register of 16 rows. Missing rows are zeros.
template <bool kWhole>
static void PackRegisters(int64_t rows, int64_t head_dim, const uint16_t* source, int64_t stride, uint16_t* to) {
  for (int64_t d = 0; d < head_dim; d += 32) {
    for (int64_t i = 0; i < 16; ++i, to += 32) {
      const Half32 row = LoadRow<kWhole>(source, i, stride, d, head_dim, i < rows);
      __builtin_memcpy(to, &row, sizeof(row));
    }
  }
}
static void PackRegisters(int64_t rows, int64_t head_dim, const uint16_t* source, int64_t stride, uint16_t* to) {
  rows >= 16 && head_dim % 32 == 0 ? PackRegisters<true>(rows, head_dim, source, stride, to)
                                   : PackRegisters<false>(rows, head_dim, source, stride, to);
}

// Packs keys [begin, end) of a block as registers of B. `begin` is a multiple of 32; zeros up to the next one.
template <bool kWhole>
static void PackKeys(int64_t begin, int64_t end, int64_t head_dim, const uint16_t* source, int64_t stride,
                     uint16_t* to) {
  const int64_t groups = CeilDiv(head_dim, 32);
  for (int64_t j = begin; j < RoundUp(end, 32); j += 16) {
    for (int64_t g = 0; g < groups; ++g) {
      Vec rows[16];
#pragma clang loop unroll(full)
      for (int n = 0; n < 16; ++n) {
        rows[n] = __builtin_bit_cast(Vec, LoadRow<kWhole>(source, j + n, stride, 32 * g, head_dim, j + n < end));
      }
      Transpose<16>(rows);
      uint16_t* tile = to + (j / 16 * groups + g) * kRegisterHalves;
#pragma clang loop unroll(full)
      for (int n = 0; n < 16; ++n) __builtin_memcpy(tile + 32 * n, &rows[n], sizeof(Vec));
    }
  }
}
static void PackKeys(int64_t begin, int64_t end, int64_t head_dim, const uint16_t* source, int64_t stride,
                     uint16_t* to) {
  end % 32 == 0 && head_dim % 32 == 0 ? PackKeys<true>(begin, end, head_dim, source, stride, to)
                                      : PackKeys<false>(begin, end, head_dim, source, stride, to);
}

template <int... kLane>
BOWLINE_ALWAYS_INLINE void Interleave(Half32 a, Half32 b, Half32 (&pairs)[2], IndexList<kLane...>) {
  pairs[0] = __builtin_shufflevector(a, b, (kLane / 2 + kLane % 2 * 32)...);
  pairs[1] = __builtin_shufflevector(a, b, (16 + kLane / 2 + kLane % 2 * 32)...);
}

// Packs values [begin, end) of a block as registers of B, in pairs of keys. Bounds and zeros as in PackKeys.
template <bool kWhole>
static void PackValues(int64_t begin, int64_t end, int64_t head_dim, const uint16_t* source, int64_t stride,
                       uint16_t* to) {
  const int64_t tiles = CeilDiv(head_dim, 32) * 2;
  for (int64_t j = begin; j < RoundUp(end, 32); j += 2) {
    uint16_t* first = to + j / 32 * tiles * kRegisterHalves + j % 32 / 2 * 32;
    for (int64_t d = 0; d < head_dim; d += 32) {
      const Half32 a = LoadRow<kWhole>(source, j, stride, d, head_dim, j < end);
      const Half32 b = LoadRow<kWhole>(source, j + 1, stride, d, head_dim, j + 1 < end);
      Half32 pairs[2];
      Interleave(a, b, pairs, Indices<32>());
      __builtin_memcpy(first + d / 16 * kRegisterHalves, &pairs[0], sizeof(Half32));
      __builtin_memcpy(first + (d / 16 + 1) * kRegisterHalves, &pairs[1], sizeof(Half32));
    }
  }
}
static void PackValues(int64_t begin, int64_t end, int64_t head_dim, const uint16_t* source, int64_t stride,
                       uint16_t* to) {
  end % 32 == 0 && head_dim % 32 == 0 ? PackValues<true>(begin, end, head_dim, source, stride, to)
                                      : PackValues<false>(begin, end, head_dim, source, stride, to);
}

// The transpose of keys [begin, end), as registers of A: [32 keys][16 elements][16 elements][32 keys]. `words` is the
// output of PackKeys, whose words are pairs of elements of a key.
template <int... kLane>
BOWLINE_ALWAYS_INLINE void PackAcross(int64_t begin, int64_t end, int64_t head_dim, const uint16_t* words, uint16_t* to,
                                      IndexList<kLane...>) {
  const int64_t groups = CeilDiv(head_dim, 32);
  for (int64_t j = begin; j < RoundUp(end, 32); j += 32) {
    for (int64_t g = 0; g < groups; ++g) {
      const uint16_t *first = words + (j / 16 * groups + g) * kRegisterHalves,
                     *second = first + groups * kRegisterHalves;
      uint16_t* tile = to + (j / 16 * groups + 2 * g) * kRegisterHalves;
#pragma clang loop unroll(full)
      for (int w = 0; w < 16; ++w) {
        const Half32 a = LoadNarrow<32>(first + 32 * w), b = LoadNarrow<32>(second + 32 * w);
        const Half32 even = __builtin_shufflevector(a, b, (2 * kLane)...),
                     odd = __builtin_shufflevector(a, b, (2 * kLane + 1)...);
        __builtin_memcpy(tile + 64 * w, &even, sizeof(even));
        __builtin_memcpy(tile + 64 * w + 32, &odd, sizeof(odd));
      }
    }
  }
}

}  // namespace bowline::kernels::BOWLINE_ISA

#endif  // BOWLINE_KERNELS_CPU_ATTENTION_ATTENTION_AMX_PACK_H_
