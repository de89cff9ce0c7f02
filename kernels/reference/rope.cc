#include <cmath>

#include "kernels/reference/reference.h"

namespace bowline::kernels::reference {

Angles RopeAngles(const std::vector<int32_t>& positions, int64_t half, double theta) {
  Angles angles;
  for (int32_t p : positions) {
    for (int64_t i = 0; i < half; ++i) {
      const double angle = p / std::pow(theta, 2.0 * i / (2.0 * half));
      angles.cos.push_back(std::cos(angle));
      angles.sin.push_back(std::sin(angle));
    }
  }
  return angles;
}

}  // namespace bowline::kernels::reference
