#include "kernels/reference/reference.h"

namespace bowline::kernels::reference {

Tensor GatherRows(const Tensor& table, int64_t columns, const std::vector<int32_t>& ids) {
  Tensor out;
  for (int32_t id : ids) {
    for (int64_t d = 0; d < columns; ++d) out.push_back(table[id * columns + d]);
  }
  return out;
}

Tensor ScatterAddRows(const Tensor& updates, int64_t rows, int64_t columns, const std::vector<int32_t>& ids) {
  Tensor out(rows * columns, 0.0);
  for (std::size_t n = 0; n < ids.size(); ++n) {
    for (int64_t d = 0; d < columns; ++d) out[ids[n] * columns + d] += updates[n * columns + d];
  }
  return out;
}

}  // namespace bowline::kernels::reference
