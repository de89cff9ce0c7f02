#ifndef BOWLINE_RUNTIME_DRIVERS_CUDA_PRODUCTS_GEMM_LAYOUT_H_
#define BOWLINE_RUNTIME_DRIVERS_CUDA_PRODUCTS_GEMM_LAYOUT_H_

// A product of the registry, which has any strides, as calls of a library whose matrices are stored column by column
// with one free stride, of columns. Pure arithmetic that needs no CUDA.

#include <array>
#include <cstdint>
#include <vector>

#include "kernels/cuda/kernel_program.h"
#include "runtime/base/status.h"

namespace bowline {

// Element (i, j) of batch z is at z * batch_stride + i + j * leading, or, where the operand is used transposed, element
// (i, j) in memory is (j, i) of the operand. leading >= rows.
struct ColumnMajor {
  int64_t rows = 1, columns = 1, leading = 1, batch_stride = 0;
  bool transposed = false;  // never of the result
};

// A loop around calls of the library: the number of calls, and the elements from one to the next in each operand.
struct GemmLoop {
  int64_t count = 1, a = 0, b = 0, c = 0;
};

// result[z] (m x n) = op(first[z]) (m x k) times op(second[z]) (k x n), for z in [0, batch), at each step of the loops.
struct GemmCalls {
  int64_t m = 1, n = 1, k = 1, batch = 1;
  // Whether the first operand is A; otherwise it is B, and the call computes the transposed product.
  bool first_is_a = false;
  ColumnMajor first, second, result;
  int64_t a = 0, b = 0, c = 0;  // offsets in elements of the first call's operands
  std::array<GemmLoop, 3> loops = {};
  // The loop over the sum. Its steps but the first add to the result.
  GemmLoop sum = {};

  int64_t Count() const { return loops[0].count * loops[1].count * loops[2].count * sum.count; }
};

// The fewest calls that compute the product: one (two for batches that are too large for one call) if the rows or the
// columns of each operand are contiguous; otherwise a call for each row, column or element of the result. Returns
// kUnimplemented for a result in bf16 of a product that needs a loop over the sum, because an operand does not change
// along k: the result would be rounded at each step.
absl::StatusOr<std::vector<GemmCalls>> GemmCallsOf(const kernels::cuda::LibraryProduct& product);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_CUDA_PRODUCTS_GEMM_LAYOUT_H_
