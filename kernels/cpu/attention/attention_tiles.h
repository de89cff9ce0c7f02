#ifndef BOWLINE_KERNELS_CPU_ATTENTION_ATTENTION_TILES_H_
#define BOWLINE_KERNELS_CPU_ATTENTION_ATTENTION_TILES_H_

// Block products that both passes are made of. Lanes of vectors are queries: scores are kept as [key][query], so that
// softmax never crosses lanes, and keys and values are read as scalars, from wherever the model has them. Products take
// words of an Operand (matmul/operand.h), one or two terms of a sum each. Only for *_isa.cc files.

#include "kernels/cpu/attention/attention.h"
#include "kernels/cpu/isa/simd.h"
#include "kernels/cpu/matmul/blocks.h"
#include "kernels/cpu/matmul/operand.h"

namespace bowline::kernels::BOWLINE_ISA {

// Rows of a register tile; its columns are two vectors.
#if defined(__AVX512F__)
inline constexpr int kTileRows = 8;
#else
inline constexpr int kTileRows = 4;
#endif
inline constexpr int kStrip = 2 * kLanes;  // columns: queries of scores, or elements of a head

BOWLINE_ALWAYS_INLINE int64_t Larger(int64_t a, int64_t b) { return a > b ? a : b; }

// Under a causal mask later blocks see more keys, or are seen by fewer queries. Alternating between both ends gives
// every run of neighbours about the same work.
BOWLINE_ALWAYS_INLINE int64_t FromBothEnds(int64_t index, int64_t count) {
  return index % 2 == 0 ? index / 2 : count - 1 - index / 2;
}

// How many keys the query sees.
BOWLINE_ALWAYS_INLINE int64_t VisibleKeys(const AttentionShape& shape, int64_t query) {
  return shape.causal ? query + shape.keys - shape.queries + 1 : shape.keys;
}
// The first of the keys that the query sees.
BOWLINE_ALWAYS_INLINE int64_t FirstKey(const AttentionShape& shape, int64_t query) {
  return shape.window == 0 ? 0 : Larger(0, VisibleKeys(shape, query) - shape.window);
}

// 2^x for x <= 0 or rounded up from there, within 1.5 units in the last place; below -126, where the result would be
// subnormal, zero. x = n + r with |r| <= 1/2, exactly; 2^r by the polynomial of degree 6 with least relative error,
// 4e-9. Adding 1.5 * 2^23 leaves n in the lowest bits.
BOWLINE_ALWAYS_INLINE Vec Exp2NonPositive(Vec x) {
  const Vec magic = Vec(12582912.0f), shifted = x + magic;
  const Vec r = x - (shifted - magic);
  Vec p = Vec(1.54697319775e-4f);
  p = MulAdd(p, r, Vec(1.34100009661e-3f));
  p = MulAdd(p, r, Vec(9.61803078251e-3f));
  p = MulAdd(p, r, Vec(5.5502973142e-2f));
  p = MulAdd(p, r, Vec(0.240226510841f));
  p = MulAdd(p, r, Vec(0.693147225395f));
  p = MulAdd(p, r, Vec(1.0f));
  IntVec exponent;
  __builtin_memcpy(&exponent, &shifted, sizeof(exponent));
  exponent = (exponent << 23) + 0x3f800000;
  Vec power;
  __builtin_memcpy(&power, &exponent, sizeof(power));
  return x < Vec(-126.0f) ? Vec(0.0f) : p * power;  // a NaN stays one
}
inline constexpr float kLog2E = 1.44269504088896341f;
inline constexpr float kLn2 = 0.693147180559945309f;

template <int kValue>
struct Constant {
  static constexpr int value = kValue;
};

// Calls body(Constant<rows>(), first row) for tiles that cover `count` rows exactly.
template <typename Body>
BOWLINE_ALWAYS_INLINE void ForRowTiles(int64_t count, Body body) {
  int64_t row = 0;
  for (; row + kTileRows <= count; row += kTileRows) body(Constant<kTileRows>(), row);
  if (kTileRows > 4 && count - row >= 4) {
    body(Constant<4>(), row);
    row += 4;
  }
  if (count - row >= 2) {
    body(Constant<2>(), row);
    row += 2;
  }
  if (count - row >= 1) body(Constant<1>(), row);
}

// acc[i][v] += sum over words s, ascending, of a[i * a_row + s * a_step] * b[s * b_step + v * kLanes ...].
template <typename Operand, int kRows, int kVectors>
BOWLINE_ALWAYS_INLINE void Accumulate(int64_t steps, const float* a, int64_t a_row, int64_t a_step, const float* b,
                                      int64_t b_step, Vec (&acc)[kRows][kVectors]) {
  for (int64_t s = 0; s < steps; ++s, a += a_step, b += b_step) {
    Vec row[kVectors];
#pragma clang loop unroll(full)
    for (int v = 0; v < kVectors; ++v) row[v] = Load(b + v * kLanes);
#pragma clang loop unroll(full)
    for (int i = 0; i < kRows; ++i) {
      const Vec scalar = LoadAs<float>(a + i * a_row);
#pragma clang loop unroll(full)
      for (int v = 0; v < kVectors; ++v) acc[i][v] = Operand::MultiplyAdd(scalar, row[v], acc[i][v]);
    }
  }
}

// out[i][v] += the same, with rows of `out` ld floats apart.
template <typename Operand, int kRows, int kVectors>
BOWLINE_ALWAYS_INLINE void AddProduct(int64_t steps, const float* a, int64_t a_row, int64_t a_step, const float* b,
                                      int64_t b_step, float* out, int64_t ld) {
  Vec acc[kRows][kVectors] = {};
  Accumulate<Operand, kRows, kVectors>(steps, a, a_row, a_step, b, b_step, acc);
#pragma clang loop unroll(full)
  for (int i = 0; i < kRows; ++i) {
#pragma clang loop unroll(full)
    for (int v = 0; v < kVectors; ++v) {
      float* p = out + i * ld + v * kLanes;
      Store(p, Load(p) + acc[i][v]);
    }
  }
}

// Words of keys or values.
struct Matrix {
  const float* data;
  int64_t stride;

  const float* Row(int64_t row) const { return data + row * stride; }
};

// Says which of the keys [k0, k0 + keys) the queries of a strip see; all positions of keys count from k0. In each of
// the strip's two vectors the window of the last query begins and ends last.
struct StripMask {
  int64_t from;       // no query sees keys before this one, a multiple of kTileRows
  int64_t all;        // no key before this one is past the visible keys of a query; may be negative
  int64_t seen[2];    // end of the keys that some query of the vector sees; 0 for a vector without queries
  int64_t hidden[2];  // end of the keys that are before the window of some query of the vector
  IntVec first;       // begin of the window of each query of the first vector
  IntVec visible;     // and where it ends; windows of the second begin and end kLanes later if causal
  int step;           // kLanes if causal

  StripMask(const AttentionShape& shape, int64_t first_query, int64_t queries, int64_t k0, int64_t keys) {
    for (int v = 0; v < 2; ++v) {
      const int64_t lanes = Smaller(queries - v * kLanes, kLanes);
      const int64_t last = first_query + v * kLanes + lanes - 1;
      seen[v] = lanes <= 0 ? 0 : Larger(0, Smaller(VisibleKeys(shape, last) - k0, keys));
      hidden[v] = lanes <= 0 ? 0 : Larger(0, Smaller(FirstKey(shape, last) - k0, seen[v]));
    }
    // Bounded so that they fit: a strip that sees less than nothing is not computed, and one whose windows begin before
    // the block sees from its first key on.
    const int64_t end = Larger(-kStrip, Smaller(VisibleKeys(shape, first_query) - k0, keys));
    const int64_t begin = shape.window == 0
                              ? -kStrip
                              : Larger(-kStrip, Smaller(VisibleKeys(shape, first_query) - shape.window - k0, keys));
    all = Smaller(end, keys);
    from = Larger(0, begin) / kTileRows * kTileRows;
    for (int i = 0; i < kLanes; ++i) {
      visible[i] = static_cast<int>(end) + (shape.causal ? i : 0);
      first[i] = static_cast<int>(begin) + i;
    }
    step = shape.causal ? kLanes : 0;
  }

  int64_t Any() const { return Larger(seen[0], seen[1]); }

  // Of the queries of vector n.
  IntVec First(int n) const { return first + n * step; }
  IntVec Visible(int n) const { return visible + n * step; }
};

// body(Constant<vectors>(), first vector, begin, end): keys [begin, end) concern that many vectors of a strip, whose
// keys are [from, end0) and [from, end1).
template <typename Body>
BOWLINE_ALWAYS_INLINE void SplitVectors(int64_t from, int64_t end0, int64_t end1, Body body) {
  const int64_t both = Larger(from, Smaller(end0, end1));
  if (both > from) body(Constant<2>(), 0, from, both);
  if (end0 > both) body(Constant<1>(), 0, both, end0);
  if (end1 > both) body(Constant<1>(), 1, both, end1);
}

// out[d][query] += sum over the keys that are seen of rows(key)[d] * weights[key][query], for a strip: the transpose of
// weights^T rows. Rows of `rows` and `weights` hold the words of kStepsPerWord keys; those of `weights` are ld floats
// apart, those of `out` kStrip.
template <typename Operand, typename Mask>
BOWLINE_ALWAYS_INLINE void AddWeightedRows(const Mask& mask, int64_t head_dim, const Matrix& rows, const float* weights,
                                           int64_t ld, float* out) {
  constexpr int kSteps = Operand::kStepsPerWord;
  SplitVectors(mask.from / kSteps, CeilDiv(mask.seen[0], kSteps), CeilDiv(mask.seen[1], kSteps),
               [&](auto vectors, int v, int64_t begin, int64_t end) __attribute__((always_inline)) {
                 ForRowTiles(head_dim, [&](auto tile, int64_t d) __attribute__((always_inline)) {
                   AddProduct<Operand, tile.value, vectors.value>(end - begin, rows.Row(begin) + d, 1, rows.stride,
                                                                  weights + begin * ld + v * kLanes, ld,
                                                                  out + d * kStrip + v * kLanes, kStrip);
                 });
               });
}

}  // namespace bowline::kernels::BOWLINE_ISA

#endif  // BOWLINE_KERNELS_CPU_ATTENTION_ATTENTION_TILES_H_
