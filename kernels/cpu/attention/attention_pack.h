#ifndef BOWLINE_KERNELS_CPU_ATTENTION_ATTENTION_PACK_H_
#define BOWLINE_KERNELS_CPU_ATTENTION_ATTENTION_PACK_H_

// Copies between the tensors of attention, whose type T is f32, bf16 or f16, and the f32 blocks of the computation.
// attention_words.h has the blocks of bf16. Only for *_isa.cc files.

#include "kernels/cpu/attention/attention_tiles.h"
#include "kernels/cpu/half.h"
#include "kernels/cpu/matmul/pack.h"

namespace bowline::kernels::BOWLINE_ISA {

template <int kCount>
using FloatVec = Words<kCount>;
template <int kCount>
using WordVec = Bits<kCount>;
template <int kCount>
using HalfVec = Halves<kCount>;

template <int kCount>
BOWLINE_ALWAYS_INLINE FloatVec<kCount> LoadWide(const float* p) {
  return LoadAs<FloatVec<kCount>>(p);
}
template <int kCount>
BOWLINE_ALWAYS_INLINE FloatVec<kCount> LoadWide(const Bf16* p) {
  HalfVec<kCount> half;
  __builtin_memcpy(&half, p, sizeof(half));
  const WordVec<kCount> word = __builtin_convertvector(half, WordVec<kCount>) << 16;
  FloatVec<kCount> wide;
  __builtin_memcpy(&wide, &word, sizeof(wide));
  return wide;
}
template <int kCount>
BOWLINE_ALWAYS_INLINE FloatVec<kCount> LoadWide(const F16* p) {
  return WidenF16<kCount>(LoadNarrow<kCount>(&p->bits));
}

template <int kCount>
BOWLINE_ALWAYS_INLINE void StoreNarrow(float* p, FloatVec<kCount> value) {
  Store(p, value);
}
template <int kCount>
BOWLINE_ALWAYS_INLINE void StoreNarrow(Bf16* p, FloatVec<kCount> value) {
#if defined(__AVX512BF16__)
  if constexpr (kCount == 16) {  // subnormal numbers become zero
    using Sixteen = float __attribute__((__vector_size__(64)));
    using SixteenHalves = __bf16 __attribute__((__vector_size__(32)));
    const auto halves = __builtin_ia32_cvtneps2bf16_512_mask((Sixteen)value, SixteenHalves{}, 0xffff);
    __builtin_memcpy(p, &halves, sizeof(halves));
    return;
  }
#endif
  WordVec<kCount> bits;
  __builtin_memcpy(&bits, &value, sizeof(bits));
  const WordVec<kCount> rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const WordVec<kCount> quiet = (bits >> 16) | 0x40u;
  const HalfVec<kCount> half = __builtin_convertvector(value == value ? rounded : quiet, HalfVec<kCount>);
  __builtin_memcpy(p, &half, sizeof(half));
}

template <int kCount>
BOWLINE_ALWAYS_INLINE void StoreNarrow(F16* p, FloatVec<kCount> value) {
  const HalfVec<kCount> half = RoundToF16<kCount>(value);
  __builtin_memcpy(p, &half, sizeof(half));
}

// Rows of `source` as f32. Returns f32 rows in place; widens others into `buffer`, of rows * head_dim floats.
BOWLINE_ALWAYS_INLINE Matrix WideRows(int64_t, int64_t, const float* source, int64_t stride, float*) {
  return {source, stride};
}
template <typename T>
BOWLINE_ALWAYS_INLINE Matrix WideRows(int64_t rows, int64_t head_dim, const T* source, int64_t stride, float* buffer) {
  for (int64_t i = 0; i < rows; ++i) {
    const T* from = source + i * stride;
    float* to = buffer + i * head_dim;
    int64_t d = 0;
    for (; d + kLanes <= head_dim; d += kLanes) Store(to + d, LoadWide<kLanes>(from + d));
    for (; d < head_dim; ++d) to[d] = Widen(from[d]);
  }
  return {buffer, head_dim};
}

// strip[w][i] = word w of row i, for kStrip rows; rows from `rows` on are zeros. load(i, w, count) returns a vector of
// the `count` words of row i from word w on, at most kLanes.
template <typename Load>
BOWLINE_ALWAYS_INLINE void TransposeRows(int64_t rows, int64_t words, Load load, float* strip) {
  for (int64_t i = 0; i < kStrip; i += kLanes) {
    for (int64_t w = 0; w < words; w += kLanes) {
      const int64_t count = Smaller(words - w, kLanes);
      Vec x[kLanes];
      for (int n = 0; n < kLanes; ++n) x[n] = i + n < rows ? load(i + n, w, count) : Vec(0.0f);
      Transpose<kLanes>(x);
      for (int64_t n = 0; n < count; ++n) Store(strip + (w + n) * kStrip + i, x[n]);
    }
  }
}

// LoadPart returns the first `count` elements, then zeros; StorePart stores the first `count` elements of `value`.
template <typename T>
BOWLINE_ALWAYS_INLINE Vec LoadPart(const T* from, int64_t count) {
  if (count == kLanes) return LoadWide<kLanes>(from);
  Vec part = Vec(0.0f);
  for (int64_t n = 0; n < count; ++n) part[n] = Widen(from[n]);
  return part;
}
template <typename T>
BOWLINE_ALWAYS_INLINE void StorePart(T* to, int64_t count, Vec value) {
  if (count == kLanes) return StoreNarrow<kLanes>(to, value);
  for (int64_t n = 0; n < count; ++n) to[n] = Narrow<T>(value[n]);
}

// strip[d][i] = scale * row(i)[d], where row(i) is the address of row i.
template <typename Row>
BOWLINE_ALWAYS_INLINE void PackRows(int64_t rows, int64_t head_dim, Row row, float scale, float* strip) {
  TransposeRows(
      rows, head_dim,
      [&](int64_t i, int64_t d, int64_t count)
          __attribute__((always_inline)) { return LoadPart(row(i) + d, count) * scale; },
      strip);
}
// Like PackRows, for rows that are `stride` elements apart.
template <typename T>
static void PackStrip(int64_t rows, int64_t head_dim, const T* source, int64_t stride, float scale, float* strip) {
  PackRows(rows, head_dim, [&](int64_t i) { return source + i * stride; }, scale, strip);
}

// Writes the values of a strip back into rows: row(i)[d] = scale[i] * strip[d][i] for i < rows.
template <typename Row>
BOWLINE_ALWAYS_INLINE void UnpackRowsOfStrip(int64_t rows, int64_t head_dim, const float* strip, const Vec (&scale)[2],
                                             Row row) {
  for (int64_t i = 0; i < rows; i += kLanes) {
    for (int64_t d = 0; d < head_dim; d += kLanes) {
      const int64_t count = Smaller(head_dim - d, kLanes), here = Smaller(rows - i, kLanes);
      Vec x[kLanes];
      for (int n = 0; n < kLanes; ++n) {
        x[n] = n < count ? Load(strip + (d + n) * kStrip + i) * scale[i / kLanes] : Vec(0.0f);
      }
      Transpose<kLanes>(x);
      for (int64_t n = 0; n < here; ++n) StorePart(row(i + n) + d, count, x[n]);
    }
  }
}
template <typename T>
static void UnpackStrip(int64_t rows, int64_t head_dim, const float* strip, const Vec (&scale)[2], T* out,
                        int64_t stride) {
  UnpackRowsOfStrip(rows, head_dim, strip, scale, [&](int64_t i) { return out + i * stride; });
}

// Packs panels of kStrip elements: panel p holds, for each row, the elements from p * kStrip on; zeros beyond head_dim.
template <typename T>
static void PackPanelsOfRows(int64_t rows, int64_t head_dim, const T* source, int64_t stride, float* panels) {
  for (int64_t first = 0; first < head_dim; first += kStrip) {
    const int64_t width = Smaller(head_dim - first, kStrip);
    for (int64_t i = 0; i < rows; ++i, panels += kStrip) {
      const T* from = source + i * stride + first;
      int64_t d = 0;
      for (; d + kLanes <= width; d += kLanes) Store(panels + d, LoadWide<kLanes>(from + d));
      for (; d < kStrip; ++d) panels[d] = d < width ? Widen(from[d]) : 0.0f;
    }
  }
}

// out(row)[d] = scale * rows[row][d]. Rows of `rows` are ld floats apart, rows of `out` `stride` elements.
template <typename T>
static void UnpackRows(int64_t count, int64_t head_dim, const float* rows, int64_t ld, float scale, T* out,
                       int64_t stride) {
  for (int64_t i = 0; i < count; ++i) {
    int64_t d = 0;
    for (; d + kLanes <= head_dim; d += kLanes) {
      StoreNarrow<kLanes>(out + i * stride + d, Load(rows + i * ld + d) * scale);
    }
    for (; d < head_dim; ++d) out[i * stride + d] = Narrow<T>(rows[i * ld + d] * scale);
  }
}

template <typename T>
static float Dot(int64_t count, const T* a, const T* b) {
  Vec sums = Vec(0.0f);
  int64_t d = 0;
  for (; d + kLanes <= count; d += kLanes) sums = MulAdd(LoadWide<kLanes>(a + d), LoadWide<kLanes>(b + d), sums);
  float sum = ReduceAdd(sums);
  for (; d < count; ++d) sum += Widen(a[d]) * Widen(b[d]);
  return sum;
}

}  // namespace bowline::kernels::BOWLINE_ISA

#endif  // BOWLINE_KERNELS_CPU_ATTENTION_ATTENTION_PACK_H_
