#include "kernels/cpu/isa/simd.h"
#include "kernels/cpu/random/random.h"

namespace bowline::kernels::BOWLINE_ISA {
namespace {

constexpr int kBlocks = kLanes / 2;     // Philox blocks at a time, a lane each, and
constexpr int kElements = 4 * kBlocks;  // elements
using Word = uint64_t __attribute__((ext_vector_type(kBlocks)));
using Real = double __attribute__((ext_vector_type(kBlocks)));
using Single = float __attribute__((ext_vector_type(kBlocks)));

template <typename To, typename From>
BOWLINE_ALWAYS_INLINE To Bits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &from, sizeof(to));
  return to;
}

// Philox4x32-10 of the blocks first ... first + kBlocks - 1, as in registry/philox.h; words are in the lower halves.
BOWLINE_ALWAYS_INLINE void Philox(uint32_t key0, uint32_t key1, uint64_t first, Word (&c)[4]) {
  Word block = Word(first);
  for (int i = 0; i < kBlocks; ++i) block[i] += static_cast<uint64_t>(i);
  const Word lower = Word(0xffffffffu);
  c[0] = block & lower;
  c[1] = block >> 32;
  c[2] = c[3] = Word(uint64_t{0});
#pragma clang loop unroll(full)
  for (int round = 0; round < 10; ++round) {
    const Word product0 = (c[0] & lower) * Word(0xD2511F53u), product1 = (c[2] & lower) * Word(0xCD9E8D57u);
    c[0] = (product1 >> 32) ^ c[1] ^ Word(key0);
    c[1] = product1 & lower;
    c[2] = (product0 >> 32) ^ c[3] ^ Word(key1);
    c[3] = product0 & lower;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
}

// Exact for integers below 2^52: they become the mantissa of a number in [2^52, 2^53).
BOWLINE_ALWAYS_INLINE Real ToReal(Word x) { return Bits<Real>(x | Word(0x4330000000000000u)) - Real(0x1p52); }

BOWLINE_ALWAYS_INLINE Real MulAdd(Real a, Real b, Real c) {
#if defined(__FMA__) || defined(__ARM_NEON)
  return __builtin_elementwise_fma(a, b, c);
#else
  return a * b + c;
#endif
}

template <int kTerms>
BOWLINE_ALWAYS_INLINE Real Polynomial(Real x, const double (&c)[kTerms]) {
  Real sum = Real(c[kTerms - 1]);
#pragma clang loop unroll(full)
  for (int i = kTerms - 2; i >= 0; --i) sum = MulAdd(sum, x, Real(c[i]));
  return sum;
}

// ln x for normal x, within a few units in the last place, also where x is close to 1. x = 2^e m with m in [sqrt(1/2),
// sqrt(2)); ln m = 2 artanh(s) with s = (m - 1)/(m + 1), |s| < 0.1716, by its Taylor series up to s^21, whose
// remainder is below 2^-55 of the sum.
BOWLINE_ALWAYS_INLINE Real Log(Real x) {
  constexpr uint64_t kSqrtHalf = 0x3FE6A09E667F3BCDu, kOne = 0x3FF0000000000000u;
  const Word shifted = Bits<Word>(x) + Word(kOne - kSqrtHalf);
  const Real e = ToReal(shifted >> 52) - Real(1023.0);
  const Real m = Bits<Real>((shifted & Word(0x000FFFFFFFFFFFFFu)) + Word(kSqrtHalf));
  const Real f = m - Real(1.0), s = f / (f + Real(2.0)), z = s * s;
  constexpr double kSeries[] = {2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11,
                                2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21};
  const Real log_m = MulAdd(s * z, Polynomial(z, kSeries), s + s);
  // ln 2 in two parts, the first with so few bits that its products with e are exact.
  return MulAdd(e, Real(0x1.62e42fefa3ap-1), MulAdd(e, Real(-0x1.0ca86c3898dp-49), log_m));
}

// Sine and cosine for 0 <= angle <= 2 pi, within a few units in the last place, also close to their zeros.
// angle = k pi/2 + r with |r| <= pi/4; Taylor series up to r^17 and r^18, whose remainders are below 2^-60.
BOWLINE_ALWAYS_INLINE void SinCos(Real angle, Real* sine, Real* cosine) {
  const Real magic = Real(0x1.8p52), shifted = MulAdd(angle, Real(0x1.45f306dc9c883p-1), magic);
  const Word k = Bits<Word>(shifted);
  const Real turns = shifted - magic;
  // pi/2 in two parts, the first of 50 bits: its products with k, and the differences, are exact.
  Real r = MulAdd(turns, Real(-0x1.921fb54442d18p+0), angle);
  r = MulAdd(turns, Real(-0x1.1a62633145c07p-54), r);
  const Real z = r * r;
  constexpr double kSin[] = {-1.0 / 6,        1.0 / 120,        -1.0 / 5040,          1.0 / 362880,
                             -1.0 / 39916800, 1.0 / 6227020800, -1.0 / 1307674368000, 1.0 / 355687428096000};
  constexpr double kCos[] = {1.0 / 24,        -1.0 / 720,         1.0 / 40320,          -1.0 / 3628800,
                             1.0 / 479001600, -1.0 / 87178291200, 1.0 / 20922789888000, -1.0 / 6402373705728000};
  const Real s = MulAdd(r * z, Polynomial(z, kSin), r);
  const Real c = MulAdd(z * z, Polynomial(z, kCos), MulAdd(z, Real(-0.5), Real(1.0)));
  const auto odd = (k & Word(uint64_t{1})) != Word(uint64_t{0});
  *sine = Bits<Real>(Bits<Word>(odd ? c : s) ^ ((k & Word(uint64_t{2})) << 62));
  *cosine = Bits<Real>(Bits<Word>(odd ? s : c) ^ (((k + Word(uint64_t{1})) & Word(uint64_t{2})) << 62));
}

struct Normal {
  [[gnu::always_inline]] void operator()(const Word (&words)[4], Real (&values)[4]) const {
#pragma clang loop unroll(full)
    for (int i = 0; i < 4; i += 2) {
      const Real uniform = (ToReal(words[i]) + Real(0.5)) * Real(0x1p-32);
      const Real radius = __builtin_elementwise_sqrt(Real(-2.0) * Log(uniform));
      Real sine, cosine;
      SinCos(Real(6.283185307179586476925) * (ToReal(words[i + 1]) * Real(0x1p-32)), &sine, &cosine);
      values[i] = radius * cosine;
      values[i + 1] = radius * sine;
    }
  }
};

struct Uniform {
  [[gnu::always_inline]] void operator()(const Word (&words)[4], Real (&values)[4]) const {
#pragma clang loop unroll(full)
    for (int i = 0; i < 4; ++i) values[i] = ToReal(words[i] >> 8) * Real(0x1p-24);
  }
};

template <typename Distribution>
BOWLINE_ALWAYS_INLINE void Generate(uint32_t key0, uint32_t key1, const RandomScaling& scaling, uint64_t block,
                                    float* out) {
  Word words[4];
  Philox(key0, key1, block, words);
  Real values[4];
  Distribution()(words, values);
  float lanes[4][kBlocks];
#pragma clang loop unroll(full)
  for (int i = 0; i < 4; ++i) {
    const Real product = Real(scaling.gain) * values[i];  // rounded, as the definition has it
    const Real scaled = product + Real(scaling.bias);
    const Single value = __builtin_convertvector(scaled, Single);
    Store<Single>(lanes[i], value < Single(scaling.limit) ? value : Single(scaling.below_limit));
  }
#pragma clang loop unroll(full)
  for (int b = 0; b < kBlocks; ++b) {
    Quad quad;
    for (int i = 0; i < 4; ++i) quad[i] = lanes[i][b];
    Store<Quad>(out + 4 * b, quad);
  }
}

template <typename Distribution>
void Fill(uint32_t key0, uint32_t key1, const RandomScaling& scaling, uint64_t first, int64_t count, float* out) {
  uint64_t block = first / 4;
  int64_t skip = static_cast<int64_t>(first % 4);  // elements of the block that come before
  while (count > 0) {
    if (skip == 0 && count >= kElements) {
      Generate<Distribution>(key0, key1, scaling, block, out);
      out += kElements;
      count -= kElements;
    } else {
      float part[kElements];
      Generate<Distribution>(key0, key1, scaling, block, part);
      const int64_t used = kElements - skip < count ? kElements - skip : count;
      for (int64_t i = 0; i < used; ++i) out[i] = part[skip + i];
      out += used;
      count -= used;
      skip = 0;
    }
    block += kBlocks;
  }
}

}  // namespace

extern const RandomTable kRandom = {&Fill<Normal>, &Fill<Uniform>};

}  // namespace bowline::kernels::BOWLINE_ISA
