#ifndef BOWLINE_KERNELS_CPU_ATTENTION_ATTENTION_TILES_H_
#define BOWLINE_KERNELS_CPU_ATTENTION_ATTENTION_TILES_H_

// Block products that both passes are made of. Only for *_isa.cc files.

#include "kernels/cpu/attention/attention.h"
#include "kernels/cpu/isa/simd.h"

namespace bowline::kernels::BOWLINE_ISA {

// Tiles are smaller than a GEMM's so that they divide the blocks.
#if defined(__AVX512F__)
inline constexpr int kTileM = 8;
#else
inline constexpr int kTileM = 4;
#endif
inline constexpr int kVecs = 2;
inline constexpr int kTileN = kVecs * kLanes;

inline constexpr int64_t kBlockQ = 64;   // queries, and
inline constexpr int64_t kBlockK = 128;  // keys of one block of scores: 32 KiB
static_assert(kBlockQ % kTileM == 0 && kBlockK % kTileN == 0 && kTileN % kTileM == 0);

BOWLINE_ALWAYS_INLINE int64_t Smaller(int64_t a, int64_t b) { return a < b ? a : b; }
BOWLINE_ALWAYS_INLINE int64_t RoundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Hands out 64-byte aligned pieces of a scratch buffer; with a null base it only counts.
struct ScratchCursor {
  float* base;
  int64_t used;

  float* Take(int64_t floats) {
    float* piece = base == nullptr ? nullptr : base + used;
    used += RoundUp(floats, 16);
    return piece;
  }
};

// scores[i][j] = a(i) . b(j) for `rows` rows of packed `a` and `columns` columns of packed `b`, both rounded up to
// tiles.
BOWLINE_ALWAYS_INLINE void ScoreBlock(int64_t rows, int64_t columns, int64_t head_dim, const float* a_panels,
                                      const float* b_panels, float* scores) {
  for (int64_t j = 0; j < columns; j += kTileN) {
    for (int64_t i = 0; i < rows; i += kTileM) {
      MultiplyInto<kTileM, kVecs, 1, kTileM, false>(head_dim, a_panels + i * head_dim, b_panels + j * head_dim, kTileN,
                                                    scores + i * kBlockK + j, kBlockK);
    }
  }
}

// out[i][:] += sum_j weights[i][j] values(j) for i < rows, j < columns. `out` has `padded` columns; the panels of
// `values` are `panel` floats apart.
BOWLINE_ALWAYS_INLINE void AddWeighted(int64_t rows, int64_t columns, int64_t padded, const float* weights,
                                       const float* values, int64_t panel, float* out) {
  for (int64_t d = 0; d < padded; d += kTileN) {
    for (int64_t i = 0; i < rows; i += kTileM) {
      MultiplyInto<kTileM, kVecs, kBlockK, 1, true>(columns, weights + i * kBlockK, values + d / kTileN * panel, kTileN,
                                                    out + i * padded + d, padded);
    }
  }
}

// out[j][:] += sum_i weights[i][j] values(i) for j < columns, i < rows: the same with the weights transposed.
BOWLINE_ALWAYS_INLINE void AddWeightedTransposed(int64_t rows, int64_t columns, int64_t padded, const float* weights,
                                                 const float* values, int64_t panel, float* out) {
  for (int64_t d = 0; d < padded; d += kTileN) {
    for (int64_t j = 0; j < columns; j += kTileM) {
      MultiplyInto<kTileM, kVecs, 1, kBlockK, true>(rows, weights + j, values + d / kTileN * panel, kTileN,
                                                    out + j * padded + d, padded);
    }
  }
}

// How many keys of the block [k0, k0 + count) query i sees.
BOWLINE_ALWAYS_INLINE int64_t VisibleKeys(const AttentionShape& shape, int64_t i, int64_t k0, int64_t count) {
  if (!shape.causal) return count;
  const int64_t visible = i + shape.keys - shape.queries + 1 - k0;
  return visible < 0 ? 0 : Smaller(visible, count);
}

// Keys beyond this are seen by no query before q_end.
BOWLINE_ALWAYS_INLINE int64_t KeyLimit(const AttentionShape& shape, int64_t q_end) {
  return shape.causal ? q_end + shape.keys - shape.queries : shape.keys;
}

}  // namespace bowline::kernels::BOWLINE_ISA

#endif  // BOWLINE_KERNELS_CPU_ATTENTION_ATTENTION_TILES_H_
