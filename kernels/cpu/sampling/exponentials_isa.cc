#include "kernels/cpu/isa/simd.h"
#include "kernels/cpu/sampling/exponentials.h"

namespace bowline::kernels::BOWLINE_ISA {
namespace {

constexpr int kDoubles = kLanes / 2;
using DoubleVec = double __attribute__((ext_vector_type(kDoubles)));
using LongVec = int64_t __attribute__((ext_vector_type(kDoubles)));
using HalfVec = float __attribute__((ext_vector_type(kDoubles)));

constexpr int64_t kStep = 4 * kDoubles;  // logits of a step, in four chains of additions
static_assert(kExponentialBlock % kStep == 0);

BOWLINE_ALWAYS_INLINE DoubleVec MulAddDoubles(DoubleVec a, DoubleVec b, DoubleVec c) {
#if defined(__FMA__) || defined(__ARM_NEON)
  return __builtin_elementwise_fma(a, b, c);
#else
  return a * b + c;
#endif
}

// e^x for x <= 0, within two units in the last place; below -708, where the result would be nearly subnormal, zero.
// x = n ln 2 + r with |r| <= ln(2)/2; ln 2 is split in two so that n ln 2 is exact to more than f64; e^r by its Taylor
// polynomial of degree 13, whose remainder r^14/14! is under 5e-18 there.
BOWLINE_ALWAYS_INLINE DoubleVec ExpNonPositiveDoubles(DoubleVec x) {
  const DoubleVec clamped = __builtin_elementwise_max(x, DoubleVec(-708.0));
  // Added to a number of this size, the last bits of the sum are n.
  constexpr double kRound = 0x1.8p52;
  const DoubleVec shifted = clamped * 1.4426950408889634 + kRound;
  const DoubleVec n = shifted - kRound;
  DoubleVec r = MulAddDoubles(n, DoubleVec(-0x1.62e42fefa0000p-1), clamped);
  r = MulAddDoubles(n, DoubleVec(-0x1.cf79abc9e3b39p-40), r);
  DoubleVec p = DoubleVec(1.0 / 6227020800.0);
  p = MulAddDoubles(p, r, DoubleVec(1.0 / 479001600.0));
  p = MulAddDoubles(p, r, DoubleVec(1.0 / 39916800.0));
  p = MulAddDoubles(p, r, DoubleVec(1.0 / 3628800.0));
  p = MulAddDoubles(p, r, DoubleVec(1.0 / 362880.0));
  p = MulAddDoubles(p, r, DoubleVec(1.0 / 40320.0));
  p = MulAddDoubles(p, r, DoubleVec(1.0 / 5040.0));
  p = MulAddDoubles(p, r, DoubleVec(1.0 / 720.0));
  p = MulAddDoubles(p, r, DoubleVec(1.0 / 120.0));
  p = MulAddDoubles(p, r, DoubleVec(1.0 / 24.0));
  p = MulAddDoubles(p, r, DoubleVec(1.0 / 6.0));
  p = MulAddDoubles(p, r, DoubleVec(0.5));
  p = MulAddDoubles(p, r, DoubleVec(1.0));
  p = MulAddDoubles(p, r, DoubleVec(1.0));
  LongVec bits;
  __builtin_memcpy(&bits, &shifted, sizeof(bits));
  bits = (bits + 1023) << 52;
  DoubleVec power;
  __builtin_memcpy(&power, &bits, sizeof(power));
  return x < DoubleVec(-708.0) ? DoubleVec(0.0) : p * power;
}

BOWLINE_ALWAYS_INLINE DoubleVec ExponentialsAt(const float* logits, double largest, double scale) {
  const DoubleVec x = __builtin_convertvector(LoadAs<HalfVec>(logits), DoubleVec);
  return ExpNonPositiveDoubles((x - largest) * scale);
}

// Copies fewer than a step's logits, followed by numbers whose exponential is zero.
BOWLINE_ALWAYS_INLINE void CopyRest(const float* logits, int64_t count, float* rest) {
  for (int64_t i = 0; i < kStep; ++i) rest[i] = i < count ? logits[i] : -__builtin_inff();
}

BOWLINE_ALWAYS_INLINE void AddStep(const float* logits, double largest, double scale, DoubleVec (&sums)[4]) {
#pragma clang loop unroll(full)
  for (int i = 0; i < 4; ++i) sums[i] += ExponentialsAt(logits + i * kDoubles, largest, scale);
}

double SumOfBlock(const float* logits, int64_t count, double largest, double scale) {
  DoubleVec sums[4] = {};
  int64_t i = 0;
  for (; i + kStep <= count; i += kStep) AddStep(logits + i, largest, scale, sums);
  if (i < count) {
    float rest[kStep];
    CopyRest(logits + i, count - i, rest);
    AddStep(rest, largest, scale, sums);
  }
  const DoubleVec all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  double sum = 0;
  for (int lane = 0; lane < kDoubles; ++lane) sum += all[lane];
  return sum;
}

void SumBlocks(const float* logits, int64_t count, double largest, double scale, double* sums) {
  for (int64_t begin = 0; begin < count; begin += kExponentialBlock) {
    const int64_t left = count - begin;
    *sums++ = SumOfBlock(logits + begin, left < kExponentialBlock ? left : kExponentialBlock, largest, scale);
  }
}

void BlockOf(const float* logits, int64_t count, double largest, double scale, double* out) {
  const auto store = [&](const float* from, int64_t at) {
    for (int i = 0; i < 4; ++i) {
      const DoubleVec values = ExponentialsAt(from + i * kDoubles, largest, scale);
      __builtin_memcpy(out + at + i * kDoubles, &values, sizeof(values));
    }
  };
  int64_t i = 0;
  for (; i + kStep <= count; i += kStep) store(logits + i, i);
  if (i < count) {
    float rest[kStep];
    CopyRest(logits + i, count - i, rest);
    store(rest, i);
    i += kStep;
  }
  for (; i < kExponentialBlock; ++i) out[i] = 0;
}

LogitsExtent Extent(const float* logits, int64_t count) {
  constexpr int kChains = 4;
  Vec largest[kChains], zeros[kChains];
  for (int c = 0; c < kChains; ++c) {
    largest[c] = Vec(-__builtin_inff());
    zeros[c] = Vec(0.0f);
  }
  int64_t i = 0;
  for (; i + kChains * kLanes <= count; i += kChains * kLanes) {
#pragma clang loop unroll(full)
    for (int c = 0; c < kChains; ++c) {
      const Vec x = Load(logits + i + c * kLanes);
      largest[c] = Max(largest[c], x);
      zeros[c] += x * 0.0f;  // NaN for infinity and NaN
    }
  }
  Vec all = Vec(0.0f), most = Vec(-__builtin_inff());
  for (int c = 0; c < kChains; ++c) {
    all += zeros[c];
    most = Max(most, largest[c]);
  }
  float sum = ReduceAdd(all), result = ReduceMax(most);
  for (; i < count; ++i) {
    sum += logits[i] * 0.0f;
    result = logits[i] > result ? logits[i] : result;
  }
  return {result, sum == 0.0f};
}

int64_t FindAtLeast(const float* logits, int64_t begin, int64_t count, float least) {
  constexpr int64_t kVecs = 4;
  int64_t i = begin;
  if (i < count && logits[i] >= least) return i;  // as at the beginning of a row, where nothing is known
  for (; i + kVecs * kLanes <= count; i += kVecs * kLanes) {
    const Vec a = Max(Load(logits + i), Load(logits + i + kLanes));
    const Vec b = Max(Load(logits + i + 2 * kLanes), Load(logits + i + 3 * kLanes));
    if (__builtin_reduce_or(Max(a, b) >= Vec(least))) break;
  }
  while (i < count && !(logits[i] >= least)) ++i;
  return i;
}

}  // namespace

extern const ExponentialsTable kExponentials = {&Extent, &FindAtLeast, &SumBlocks, &BlockOf};

}  // namespace bowline::kernels::BOWLINE_ISA
