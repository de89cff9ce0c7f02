#ifndef BOWLINE_KERNELS_CUDA_ATTENTION_PROGRAM_H_
#define BOWLINE_KERNELS_CUDA_ATTENTION_PROGRAM_H_

#include "kernels/cuda/kernel_program.h"

namespace bowline::kernels::cuda {

absl::StatusOr<KernelProgram> AttentionForwardProgram(const Signature& signature);
absl::StatusOr<KernelProgram> AttentionBackwardProgram(const Signature& signature);

}  // namespace bowline::kernels::cuda

#endif  // BOWLINE_KERNELS_CUDA_ATTENTION_PROGRAM_H_
