#ifndef BOWLINE_KERNELS_CPU_ATTENTION_ATTENTION_TILES_H_
#define BOWLINE_KERNELS_CPU_ATTENTION_ATTENTION_TILES_H_

// Block products that both passes of attention use. Lanes of vectors are queries: scores are stored as [key][query], so
// that softmax never crosses lanes. Keys and values are read as scalars, in place in the model's layout. Products take
// words of an Operand (matmul/operand.h), each of one or two terms of a sum. Only for *_isa.cc files.

#include "kernels/cpu/attention/attention.h"
#include "kernels/cpu/isa/simd.h"
#include "kernels/cpu/matmul/blocks.h"
#include "kernels/cpu/matmul/operand.h"

namespace bowline::kernels::BOWLINE_ISA {

// Rows of a register tile. Its columns are two vectors.
#if defined(__AVX512F__)
inline constexpr int kTileRows = 8;
#else
inline constexpr int kTileRows = 4;
#endif
inline constexpr int kStrip = 2 * kLanes;  // columns: queries of scores, or elements of a head

BOWLINE_ALWAYS_INLINE int64_t Larger(int64_t a, int64_t b) { return a > b ? a : b; }

// The index of work item `index` of `count` if items alternate between both ends. Under a causal mask later queries see
// more keys, and fewer queries see later keys, so each run of neighbouring items then has about the same work.
BOWLINE_ALWAYS_INLINE int64_t FromBothEnds(int64_t index, int64_t count) {
  return index % 2 == 0 ? index / 2 : count - 1 - index / 2;
}

// The end of the keys that the query sees.
BOWLINE_ALWAYS_INLINE int64_t VisibleKeys(const AttentionShape& shape, int64_t query) {
  return shape.causal ? query + shape.keys - shape.queries + 1 : shape.keys;
}
// The first of the keys that the query sees.
BOWLINE_ALWAYS_INLINE int64_t FirstKey(const AttentionShape& shape, int64_t query) {
  return shape.window == 0 ? 0 : Larger(0, VisibleKeys(shape, query) - shape.window);
}

// 2^x for x <= 0, or for x that rounding made slightly positive, within 1.5 units in the last place; zero for x < -126,
// where the result would be subnormal. x = n + r with |r| <= 1/2, exactly. 2^r is the polynomial of degree 6 with the
// least relative error, 4e-9. Adding 1.5 * 2^23 to x leaves n in the lowest bits of the sum.
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

// acc[i][v] += the sum over words s, ascending, of a[i * a_row + s * a_step] * b[s * b_step + v * kLanes ...].
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

// Adds the sums that Accumulate computes to out[i][v]. Rows of `out` are ld floats apart.
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

// Words of keys or values. Rows are `stride` words apart.
struct Matrix {
  const float* data;
  int64_t stride;

  const float* Row(int64_t row) const { return data + row * stride; }
};

// Which keys the queries of a strip see, of the block [k0, k0 + keys). All members count keys from k0. A query sees a
// window of keys. In each of the strip's two vectors, the window of the last query begins and ends last.
struct StripMask {
  int64_t from;       // no query sees a key before this one; a multiple of kTileRows
  int64_t all;        // the end of the window that ends first; may be negative
  int64_t seen[2];    // end of the keys that any query of the vector sees; 0 for a vector without queries
  int64_t hidden[2];  // begin of the window of the vector's last query: queries may not see keys before it
  IntVec first;       // begin of the window of each query of the first vector
  IntVec visible;     // end of the window of each query of the first vector
  int step;           // distance of the second vector's windows from the first's: kLanes if causal, else 0

  StripMask(const AttentionShape& shape, int64_t first_query, int64_t queries, int64_t k0, int64_t keys) {
    for (int v = 0; v < 2; ++v) {
      const int64_t lanes = Smaller(queries - v * kLanes, kLanes);
      const int64_t last = first_query + v * kLanes + lanes - 1;
      seen[v] = lanes <= 0 ? 0 : Larger(0, Smaller(VisibleKeys(shape, last) - k0, keys));
      hidden[v] = lanes <= 0 ? 0 : Larger(0, Smaller(FirstKey(shape, last) - k0, seen[v]));
    }
    // Clamped so that they fit into 32 bits. A strip whose windows are empty is not computed, and a window that begins
    // before the block shows the block from its first key on.
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

  // The windows of the queries of vector n.
  IntVec First(int n) const { return first + n * step; }
  IntVec Visible(int n) const { return visible + n * step; }
};

// Splits the keys by the vectors of a strip that see them: the first sees [from, end0), the second [from, end1). Calls
// body(Constant<vectors>(), first vector, begin, end) for each part [begin, end).
template <typename Body>
BOWLINE_ALWAYS_INLINE void SplitVectors(int64_t from, int64_t end0, int64_t end1, Body body) {
  const int64_t both = Larger(from, Smaller(end0, end1));
  if (both > from) body(Constant<2>(), 0, from, both);
  if (end0 > both) body(Constant<1>(), 0, both, end0);
  if (end1 > both) body(Constant<1>(), 1, both, end1);
}

// out[d][query] += the sum, over the keys that the strip sees, of rows(key)[d] * weights[key][query]: the transpose of
// weights^T rows. Each row of `rows` and `weights` holds words of kStepsPerWord keys. Rows of `weights` are ld floats
// apart, rows of `out` kStrip.
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
