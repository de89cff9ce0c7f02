#ifndef BOWLINE_KERNELS_BENCHMARKS_ONEDNN_H_
#define BOWLINE_KERNELS_BENCHMARKS_ONEDNN_H_

#include <cstdint>
#include <functional>

namespace bowline::kernels {

// C = A B in f32, of dense matrices m x k and k x n, each stored by rows or, where it is `transposed`, by columns.
struct OneDnnShape {
  int64_t m, n, k;
  bool a_transposed, b_transposed;
  bool bf16;  // A and B, otherwise f32
};

using OneDnnProduct = std::function<void(const void* a, const void* b, float* c)>;

// oneDNN's product on `threads` threads of its own pool, for comparison with Bowline's kernels; null in a build without
// oneDNN. The process never releases the resources of such a product.
OneDnnProduct MakeOneDnnProduct(const OneDnnShape& shape, int threads);

}  // namespace bowline::kernels

#endif  // BOWLINE_KERNELS_BENCHMARKS_ONEDNN_H_
