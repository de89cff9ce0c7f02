#include <cmath>
#include <numbers>

#include "kernels/reference/reference.h"

namespace bowline::kernels::reference {

double Gelu(double x) { return x / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x))); }

double GeluSlope(double x) {
  const double scale = std::sqrt(2 / std::numbers::pi);
  const double t = std::tanh(scale * (x + 0.044715 * x * x * x));
  return (1 + t) / 2 + x / 2 * (1 - t * t) * scale * (1 + 3 * 0.044715 * x * x);
}

Tensor SumsOverK(int64_t rows, int64_t k, int64_t row_stride, int64_t k_stride, const Tensor& matrix) {
  Tensor sums(rows, 0.0);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t p = 0; p < k; ++p) sums[i] += matrix[i * row_stride + p * k_stride];
  }
  return sums;
}

}  // namespace bowline::kernels::reference
