#ifndef BOWLINE_RUNTIME_DRIVERS_CUDA_PRODUCTS_GEMM_EPILOGUE_H_
#define BOWLINE_RUNTIME_DRIVERS_CUDA_PRODUCTS_GEMM_EPILOGUE_H_

#include "runtime/drivers/cuda/card/cuda_card.h"
#include "runtime/drivers/cuda/products/gemm_layout.h"
#include "runtime/hal/memory.h"

namespace bowline {

// Tells cuBLASLt which epilogue a product has, for its choice of an algorithm. `calls` are those of the product, which
// has an epilogue. Returns kInternal if these are no single call of the transposed product: the library's epilogues go
// by its own rows and columns, in which C is transposed, so that its rows are the columns of C.
absl::Status DescribeEpilogue(const CublasLtApi& api, cublasLtMatmulDesc_t operation,
                              const kernels::cuda::LibraryProduct& product, const GemmCalls& calls);

// Tells it where this launch's bias or sums, and its other matrix, are; operands that the product lacks are ignored.
absl::Status PointEpilogue(const CublasLtApi& api, cublasLtMatmulDesc_t operation,
                           const kernels::cuda::LibraryProduct& product, hal::DeviceAddress vector,
                           hal::DeviceAddress matrix);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_CUDA_PRODUCTS_GEMM_EPILOGUE_H_
