#ifndef BOWLINE_KERNELS_CUDA_TRIGONOMETRY_H_
#define BOWLINE_KERNELS_CUDA_TRIGONOMETRY_H_

// Logarithm, sine and cosine in f64 by polynomials, as kernels/cpu/random/random_isa.cc has them and explains them:
// CUDA's own sine needs local memory.

#include "kernels/cuda/device.h"

namespace bowline::device {

// Exact for integers below 2^52.
BOWLINE_DEVICE double ToDouble(uint64_t x) { return Add(DoubleOf(x | 0x4330000000000000u), -0x1p52); }

// ln x for normal x.
BOWLINE_DEVICE double LogOf(double x) {
  constexpr uint64_t kSqrtHalf = 0x3FE6A09E667F3BCDu, kOne = 0x3FF0000000000000u;
  const uint64_t shifted = BitsOf(x) + (kOne - kSqrtHalf);
  const double e = Add(ToDouble(shifted >> 52), -1023.0);
  const double m = DoubleOf((shifted & 0x000FFFFFFFFFFFFFu) + kSqrtHalf);
  const double f = m - 1.0, s = f / (f + 2.0), z = Mul(s, s);
  double sum = 2.0 / 21;
  sum = MulAdd(sum, z, 2.0 / 19);
  sum = MulAdd(sum, z, 2.0 / 17);
  sum = MulAdd(sum, z, 2.0 / 15);
  sum = MulAdd(sum, z, 2.0 / 13);
  sum = MulAdd(sum, z, 2.0 / 11);
  sum = MulAdd(sum, z, 2.0 / 9);
  sum = MulAdd(sum, z, 2.0 / 7);
  sum = MulAdd(sum, z, 2.0 / 5);
  sum = MulAdd(sum, z, 2.0 / 3);
  const double log_m = MulAdd(Mul(s, z), sum, Add(s, s));
  return MulAdd(e, 0x1.62e42fefa3ap-1, MulAdd(e, -0x1.0ca86c3898dp-49, log_m));
}

// Computes the sine and cosine of an angle with |angle| < 2^49. The number of quarter turns then has at most 51 bits,
// and the subtracted angle has an error of at most 2^-107 for each quarter turn.
BOWLINE_DEVICE void SineCosine(double angle, double* sine, double* cosine) {
  const double magic = 0x1.8p52, shifted = MulAdd(angle, 0x1.45f306dc9c883p-1, magic);
  const uint64_t k = BitsOf(shifted);
  const double turns = Add(shifted, -magic);
  double r = MulAdd(turns, -0x1.921fb54442d18p+0, angle);
  r = MulAdd(turns, -0x1.1a62633145c07p-54, r);
  const double z = Mul(r, r);
  double s = 1.0 / 355687428096000;
  s = MulAdd(s, z, -1.0 / 1307674368000);
  s = MulAdd(s, z, 1.0 / 6227020800);
  s = MulAdd(s, z, -1.0 / 39916800);
  s = MulAdd(s, z, 1.0 / 362880);
  s = MulAdd(s, z, -1.0 / 5040);
  s = MulAdd(s, z, 1.0 / 120);
  s = MulAdd(s, z, -1.0 / 6);
  s = MulAdd(Mul(r, z), s, r);
  double c = -1.0 / 6402373705728000;
  c = MulAdd(c, z, 1.0 / 20922789888000);
  c = MulAdd(c, z, -1.0 / 87178291200);
  c = MulAdd(c, z, 1.0 / 479001600);
  c = MulAdd(c, z, -1.0 / 3628800);
  c = MulAdd(c, z, 1.0 / 40320);
  c = MulAdd(c, z, -1.0 / 720);
  c = MulAdd(c, z, 1.0 / 24);
  c = MulAdd(Mul(z, z), c, MulAdd(z, -0.5, 1.0));
  const bool odd = (k & 1) != 0;
  *sine = DoubleOf(BitsOf(odd ? c : s) ^ ((k & 2) << 62));
  *cosine = DoubleOf(BitsOf(odd ? s : c) ^ (((k + 1) & 2) << 62));
}

}  // namespace bowline::device

#endif  // BOWLINE_KERNELS_CUDA_TRIGONOMETRY_H_
