#ifndef BOWLINE_RUNTIME_DRIVERS_CUDA_PRODUCTS_GEMM_H_
#define BOWLINE_RUNTIME_DRIVERS_CUDA_PRODUCTS_GEMM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "runtime/drivers/cuda/card/cuda_card.h"
#include "runtime/drivers/cuda/products/gemm_layout.h"
#include "runtime/hal/memory.h"

namespace bowline {

struct GemmOptions {
  bool tf32 = false;                        // f32 products may round their operands to 10 bits
  bool tune = false;                        // the fastest of the first algorithms, instead of the first
  std::vector<std::string> libraries = {};  // folders for cuBLASLt
};

// A product by cuBLASLt, of which the algorithms are chosen when it is made, so that a launch chooses and allocates
// nothing. Sums are f32. Reductions between blocks are in f32 and in a fixed order: the bits are the same in each run.
class Gemm {
 public:
  // The library may use so much workspace. Returns kUnimplemented if it has no algorithm for product and epilogue.
  static absl::StatusOr<std::unique_ptr<Gemm>> Create(CudaCard* card, const kernels::cuda::LibraryProduct& product,
                                                      size_t scratch_bytes, const GemmOptions& options);

  // `arguments` are those of the kernel, of which the product says which are its own. From any thread.
  absl::Status Submit(CUstream stream, absl::Span<const hal::DeviceAddress> arguments,
                      hal::DeviceAddress scratch) const;

 private:
  // The library's descriptions of the calls of one shape.
  class Shape;

  Gemm();

 public:
  ~Gemm();

 private:
  std::vector<std::unique_ptr<Shape>> shapes_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_CUDA_PRODUCTS_GEMM_H_
