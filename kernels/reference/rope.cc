#include <cmath>

#include "kernels/reference/reference.h"

namespace bowline::kernels::reference {

namespace {

double Scaled(double frequency, const RopeScaling& s) {
  if (s.original == 0) return frequency / s.factor;
  const double wavelength = 2 * std::acos(-1.0) / frequency;
  if (wavelength < s.original / s.high) return frequency;
  if (wavelength > s.original / s.low) return frequency / s.factor;
  const double smooth = (s.original / wavelength - s.low) / (s.high - s.low);
  return (1 - smooth) * frequency / s.factor + smooth * frequency;
}

}  // namespace

Angles RopeAngles(const std::vector<int32_t>& positions, int64_t half, double theta, const RopeScaling& scaling) {
  Angles angles;
  for (int32_t p : positions) {
    for (int64_t i = 0; i < half; ++i) {
      const double angle = p * Scaled(1 / std::pow(theta, 2.0 * i / (2.0 * half)), scaling);
      angles.cos.push_back(std::cos(angle));
      angles.sin.push_back(std::sin(angle));
    }
  }
  return angles;
}

}  // namespace bowline::kernels::reference
