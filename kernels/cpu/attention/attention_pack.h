#ifndef BOWLINE_KERNELS_CPU_ATTENTION_ATTENTION_PACK_H_
#define BOWLINE_KERNELS_CPU_ATTENTION_ATTENTION_PACK_H_

// Between the tensors of attention, f32 or bf16 (T), and the f32 blocks that it computes with. Only for *_isa.cc files.

#include "kernels/cpu/attention/attention_tiles.h"
#include "kernels/cpu/bf16.h"
#include "kernels/cpu/matmul/pack.h"

namespace bowline::kernels::BOWLINE_ISA {

template <int kCount>
using FloatVec = float __attribute__((ext_vector_type(kCount)));
template <int kCount>
using WordVec = uint32_t __attribute__((ext_vector_type(kCount)));
template <int kCount>
using HalfVec = uint16_t __attribute__((ext_vector_type(kCount)));

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
BOWLINE_ALWAYS_INLINE void StoreNarrow(float* p, FloatVec<kCount> value) {
  Store(p, value);
}
template <int kCount>
BOWLINE_ALWAYS_INLINE void StoreNarrow(Bf16* p, FloatVec<kCount> value) {
  WordVec<kCount> bits;
  __builtin_memcpy(&bits, &value, sizeof(bits));
  const WordVec<kCount> rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const WordVec<kCount> quiet = (bits >> 16) | 0x40u;
  const HalfVec<kCount> half = __builtin_convertvector(value == value ? rounded : quiet, HalfVec<kCount>);
  __builtin_memcpy(p, &half, sizeof(half));
}

// Rows of `source` as f32: in place where they are, else widened into `buffer`.
BOWLINE_ALWAYS_INLINE Matrix WideRows(int64_t, int64_t, const float* source, int64_t stride, float*) {
  return {source, stride};
}
BOWLINE_ALWAYS_INLINE Matrix WideRows(int64_t rows, int64_t head_dim, const Bf16* source, int64_t stride,
                                      float* buffer) {
  for (int64_t i = 0; i < rows; ++i) {
    const Bf16* from = source + i * stride;
    float* to = buffer + i * head_dim;
    int64_t d = 0;
    for (; d + kLanes <= head_dim; d += kLanes) Store(to + d, LoadWide<kLanes>(from + d));
    for (; d < head_dim; ++d) to[d] = Widen(from[d]);
  }
  return {buffer, head_dim};
}

// strip[d][i] = scale * source(i)[d], and zeros from row `rows` on to the strip's width.
template <typename T>
static void PackStrip(int64_t rows, int64_t head_dim, const T* source, int64_t stride, float scale, float* strip) {
  int64_t i = 0;
  for (; i + 4 <= rows; i += 4) {
    const T* from = source + i * stride;
    int64_t d = 0;
    for (; d + 4 <= head_dim; d += 4) {
      Quad x[4];
      for (int n = 0; n < 4; ++n) x[n] = LoadWide<4>(from + n * stride + d);
      Transpose<4>(x);
      for (int n = 0; n < 4; ++n) Store<Quad>(strip + (d + n) * kStrip + i, x[n] * scale);
    }
    for (; d < head_dim; ++d) {
      for (int n = 0; n < 4; ++n) strip[d * kStrip + i + n] = Widen(from[n * stride + d]) * scale;
    }
  }
  for (int64_t d = 0; d < head_dim; ++d) {
    for (int64_t n = i; n < kStrip; ++n) {
      strip[d * kStrip + n] = n < rows ? Widen(source[n * stride + d]) * scale : 0.0f;
    }
  }
}

// The other way: out(i)[d] = scale * strip[d][i] for i < rows.
template <typename T>
static void UnpackStrip(int64_t rows, int64_t head_dim, const float* strip, float scale, T* out, int64_t stride) {
  int64_t i = 0;
  for (; i + 4 <= rows; i += 4) {
    T* to = out + i * stride;
    int64_t d = 0;
    for (; d + 4 <= head_dim; d += 4) {
      Quad x[4];
      for (int n = 0; n < 4; ++n) x[n] = LoadAs<Quad>(strip + (d + n) * kStrip + i) * scale;
      Transpose<4>(x);
      for (int n = 0; n < 4; ++n) StoreNarrow<4>(to + n * stride + d, x[n]);
    }
    for (; d < head_dim; ++d) {
      for (int n = 0; n < 4; ++n) to[n * stride + d] = Narrow<T>(strip[d * kStrip + i + n] * scale);
    }
  }
  for (; i < rows; ++i) {
    for (int64_t d = 0; d < head_dim; ++d) out[i * stride + d] = Narrow<T>(strip[d * kStrip + i] * scale);
  }
}

// Panels of kStrip elements: panel d / kStrip holds, for each row, source(row)[d ...], with zeros beyond head_dim.
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

// out(row)[d] = scale * rows[row][d] of rows that are `ld` floats apart.
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
