#include "kernels/cpu/grouped/grouped_reference.h"

namespace bowline::kernels::reference {

std::vector<double> GroupedMatmul(const GroupedSize& s, bool transposed, const std::vector<double>& rows,
                                  const std::vector<double>& matrices, const std::vector<int32_t>& offsets) {
  std::vector<double> out(s.rows * s.n, 0.0);
  for (size_t g = 0; g + 1 < offsets.size(); ++g) {
    const double* matrix = &matrices[g * s.k * s.n];
    for (int64_t r = offsets[g]; r < offsets[g + 1]; ++r) {
      for (int64_t j = 0; j < s.n; ++j) {
        for (int64_t i = 0; i < s.k; ++i) {
          out[r * s.n + j] += rows[r * s.k + i] * (transposed ? matrix[j * s.k + i] : matrix[i * s.n + j]);
        }
      }
    }
  }
  return out;
}

std::vector<double> GroupedOuter(const GroupedSize& s, const std::vector<double>& lhs, const std::vector<double>& rhs,
                                 const std::vector<int32_t>& offsets) {
  std::vector<double> out(s.groups * s.k * s.n, 0.0);
  for (size_t g = 0; g + 1 < offsets.size(); ++g) {
    for (int64_t r = offsets[g]; r < offsets[g + 1]; ++r) {
      for (int64_t i = 0; i < s.k; ++i) {
        for (int64_t j = 0; j < s.n; ++j) out[(g * s.k + i) * s.n + j] += lhs[r * s.k + i] * rhs[r * s.n + j];
      }
    }
  }
  return out;
}

}  // namespace bowline::kernels::reference
