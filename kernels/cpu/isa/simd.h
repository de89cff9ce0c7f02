#ifndef BOWLINE_KERNELS_CPU_ISA_SIMD_H_
#define BOWLINE_KERNELS_CPU_ISA_SIMD_H_

// Vectors of the instruction set that the including file is compiled for. Only for *_isa.cc files (see isa.h). Nothing
// here may have linkage outside of BOWLINE_ISA, else the linker might mix functions of two instruction sets.

#include <cstdint>

namespace bowline::kernels::BOWLINE_ISA {

#if defined(__AVX512F__)
inline constexpr int kLanes = 16;
#elif defined(__AVX2__)
inline constexpr int kLanes = 8;
#else
inline constexpr int kLanes = 4;
#endif

using Vec = float __attribute__((ext_vector_type(kLanes)));
using IntVec = int32_t __attribute__((ext_vector_type(kLanes)));

#define BOWLINE_ALWAYS_INLINE static inline __attribute__((always_inline))

// Loads and stores vectors of any type V. `p` needs no alignment.
template <typename V>
BOWLINE_ALWAYS_INLINE V LoadAs(const float* p) {
  V v;
  __builtin_memcpy(&v, p, sizeof(v));
  return v;
}
template <typename V>
BOWLINE_ALWAYS_INLINE void Store(float* p, V v) {
  __builtin_memcpy(p, &v, sizeof(v));
}
BOWLINE_ALWAYS_INLINE Vec Load(const float* p) { return LoadAs<Vec>(p); }

BOWLINE_ALWAYS_INLINE Vec MulAdd(Vec a, Vec b, Vec c) {
#if defined(__FMA__) || defined(__ARM_NEON)
  return __builtin_elementwise_fma(a, b, c);
#else
  return a * b + c;  // without the instruction, fma is a library call per lane
#endif
}

BOWLINE_ALWAYS_INLINE Vec Max(Vec a, Vec b) { return __builtin_elementwise_max(a, b); }

BOWLINE_ALWAYS_INLINE float ReduceMax(Vec v) { return __builtin_reduce_max(v); }

// The sum of the lanes. Adds pairwise, so that the order of additions, and so the result, is fixed.
BOWLINE_ALWAYS_INLINE float ReduceAdd(Vec v) {
  float x[kLanes];
  Store(x, v);
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) x[i] += x[i + width];
  }
  return x[0];
}

// e^x for x <= 0, within 1.5 units in the last place; zero for x < -87.3, where the result would be subnormal. With
// |r| <= ln(2)/2, x = n ln 2 + r. ln 2 is the sum of two constants, so that n ln 2 is more exact than f32. e^r is its
// Taylor polynomial of degree 7, whose remainder r^8/8! is below 6e-9.
BOWLINE_ALWAYS_INLINE Vec ExpNonPositive(Vec x) {
  const Vec clamped = Max(x, Vec(-87.3f));
  const Vec n = __builtin_elementwise_roundeven(clamped * 1.44269504088896341f);
  Vec r = MulAdd(n, Vec(-0.693359375f), clamped);
  r = MulAdd(n, Vec(2.12194440e-4f), r);
  Vec p = Vec(1.0f / 5040);
  p = MulAdd(p, r, Vec(1.0f / 720));
  p = MulAdd(p, r, Vec(1.0f / 120));
  p = MulAdd(p, r, Vec(1.0f / 24));
  p = MulAdd(p, r, Vec(1.0f / 6));
  p = MulAdd(p, r, Vec(0.5f));
  p = MulAdd(p, r, Vec(1.0f));
  p = MulAdd(p, r, Vec(1.0f));
  const IntVec exponent = (__builtin_convertvector(n, IntVec) + 127) << 23;
  Vec power;
  __builtin_memcpy(&power, &exponent, sizeof(power));
  return x < Vec(-87.3f) ? Vec(0.0f) : p * power;
}

// acc[i][j] += the sum over s, ascending, of a(i, s) * b(s, j), where a(i, s) = a[i * kRowStride + s * kStepStride] and
// row s of b begins at b + s * b_step. The strides of `a` are constants so that they become address displacements.
template <int kRows, int kVecs, int kRowStride, int kStepStride>
BOWLINE_ALWAYS_INLINE void MultiplyTile(int64_t steps, const float* a, const float* b, int64_t b_step,
                                        Vec (&acc)[kRows][kVecs]) {
  for (int64_t s = 0; s < steps; ++s, a += kStepStride, b += b_step) {
    Vec row[kVecs];
#pragma clang loop unroll(full)
    for (int j = 0; j < kVecs; ++j) row[j] = Load(b + j * kLanes);
#pragma clang loop unroll(full)
    for (int i = 0; i < kRows; ++i) {
      const Vec scalar = a[i * kRowStride];
#pragma clang loop unroll(full)
      for (int j = 0; j < kVecs; ++j) acc[i][j] = MulAdd(scalar, row[j], acc[i][j]);
    }
  }
}

// out = a * b, or += with kAccumulate, for kRows rows of kVecs whole vectors. Rows of `out` are ld floats apart.
template <int kRows, int kVecs, int kRowStride, int kStepStride, bool kAccumulate>
BOWLINE_ALWAYS_INLINE void MultiplyInto(int64_t steps, const float* a, const float* b, int64_t b_step, float* out,
                                        int64_t ld) {
  Vec acc[kRows][kVecs] = {};
  MultiplyTile<kRows, kVecs, kRowStride, kStepStride>(steps, a, b, b_step, acc);
#pragma clang loop unroll(full)
  for (int i = 0; i < kRows; ++i) {
#pragma clang loop unroll(full)
    for (int j = 0; j < kVecs; ++j) {
      float* p = out + i * ld + j * kLanes;
      Store(p, kAccumulate ? Load(p) + acc[i][j] : acc[i][j]);
    }
  }
}

using Quad = float __attribute__((ext_vector_type(4)));

// Packs `extent` outer elements into panels of kWidth. For each step s, panel p holds the kWidth values
// src[(p * kWidth + w) * outer_stride + s * step_stride] * scale, and zeros where p * kWidth + w >= extent.
// `dst` has room for ceil(extent / kWidth) * steps * kWidth floats.
template <int kWidth>
static void PackPanels(int64_t extent, int64_t steps, const float* src, int64_t outer_stride, int64_t step_stride,
                       float scale, float* dst) {
  for (int64_t first = 0; first < extent; first += kWidth, dst += steps * kWidth) {
    const float* panel = src + first * outer_stride;
    const int64_t width = extent - first < kWidth ? extent - first : kWidth;
    if (width < kWidth) {
      for (int64_t s = 0; s < steps; ++s) {
        for (int64_t w = 0; w < kWidth; ++w) {
          dst[s * kWidth + w] = w < width ? panel[w * outer_stride + s * step_stride] * scale : 0.0f;
        }
      }
    } else if (outer_stride == 1) {
      for (int64_t s = 0; s < steps; ++s) {
#pragma clang loop unroll(full)
        for (int w = 0; w < kWidth; w += 4) {
          Store<Quad>(dst + s * kWidth + w, LoadAs<Quad>(panel + s * step_stride + w) * scale);
        }
      }
    } else {
      int64_t s = 0;
      if (step_stride == 1) {  // transpose 4x4 blocks in registers
        for (; s + 4 <= steps; s += 4) {
          for (int w = 0; w < kWidth; w += 4) {
            const float* p = panel + w * outer_stride + s;
            const Quad a = LoadAs<Quad>(p);
            const Quad b = LoadAs<Quad>(p + outer_stride);
            const Quad c = LoadAs<Quad>(p + 2 * outer_stride);
            const Quad d = LoadAs<Quad>(p + 3 * outer_stride);
            const Quad ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
            const Quad ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
            const Quad cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
            const Quad cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
            float* q = dst + s * kWidth + w;
            Store<Quad>(q, __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5) * scale);
            Store<Quad>(q + kWidth, __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7) * scale);
            Store<Quad>(q + 2 * kWidth, __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5) * scale);
            Store<Quad>(q + 3 * kWidth, __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7) * scale);
          }
        }
      }
      for (; s < steps; ++s) {
        for (int w = 0; w < kWidth; ++w) dst[s * kWidth + w] = panel[w * outer_stride + s * step_stride] * scale;
      }
    }
  }
}

}  // namespace bowline::kernels::BOWLINE_ISA

#endif  // BOWLINE_KERNELS_CPU_ISA_SIMD_H_
