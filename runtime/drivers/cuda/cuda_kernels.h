#ifndef BOWLINE_RUNTIME_DRIVERS_CUDA_CUDA_KERNELS_H_
#define BOWLINE_RUNTIME_DRIVERS_CUDA_CUDA_KERNELS_H_

#include <memory>

#include "runtime/drivers/cuda/card/cuda_card.h"
#include "runtime/drivers/cuda/cudnn/attention.h"
#include "runtime/drivers/cuda/products/gemm.h"
#include "runtime/hal/executable.h"

namespace bowline {

struct CudaKernelOptions {
  GemmOptions gemm;
  AttentionOptions attention;
  bool own_epilogues = false;  // of products: by functions of the driver, also where cuBLASLt has an algorithm
};

// A kernel of the registry as kernels/cuda computes it: launches of functions of the driver's image, products of
// cuBLASLt, and attention by cuDNN. kNotFound, kInvalidArgument as kernels::cuda::ProgramOf.
absl::StatusOr<std::unique_ptr<hal::Launchable>> CreateCudaKernel(CudaCard* card, const kernels::Signature& signature,
                                                                  const CudaKernelOptions& options);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_CUDA_CUDA_KERNELS_H_
