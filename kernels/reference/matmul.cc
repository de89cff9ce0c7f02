#include "kernels/reference/reference.h"

namespace bowline::kernels::reference {

void Matmul(int64_t batch, int64_t m, int64_t n, int64_t k, const std::array<int64_t, 3>& a_strides,
            const std::array<int64_t, 3>& b_strides, const std::array<int64_t, 3>& c_strides, bool accumulate,
            const Tensor& a, const Tensor& b, Tensor& c) {
  for (int64_t s = 0; s < batch; ++s) {
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double& out = c[s * c_strides[0] + i * c_strides[1] + j * c_strides[2]];
        double sum = accumulate ? out : 0.0;
        for (int64_t p = 0; p < k; ++p) {
          sum += a[s * a_strides[0] + i * a_strides[1] + p * a_strides[2]] *
                 b[s * b_strides[0] + p * b_strides[1] + j * b_strides[2]];
        }
        out = sum;
      }
    }
  }
}

}  // namespace bowline::kernels::reference
