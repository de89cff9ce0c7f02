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
  bool own_epilogues = false;  // the driver's functions compute epilogues of products, even if cuBLASLt could
};

// Makes a kernel of the registry as kernels/cuda computes it: launches of functions of the driver's image, products of
// cuBLASLt, and attention by cuDNN. Returns kNotFound and kInvalidArgument as kernels::cuda::ProgramOf does.
absl::StatusOr<std::unique_ptr<hal::Launchable>> CreateCudaKernel(CudaCard* card, const kernels::Signature& signature,
                                                                  const CudaKernelOptions& options);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_CUDA_CUDA_KERNELS_H_
