#ifndef BOWLINE_KERNELS_CUDA_FILL_PROGRAM_H_
#define BOWLINE_KERNELS_CUDA_FILL_PROGRAM_H_

#include "kernels/cuda/kernel_program.h"

namespace bowline::kernels::cuda {

// A launch that sets `bytes` bytes at `out`, an address that is a multiple of 4, to copies of `word`.
DeviceLaunch FillLaunch(Parameter out, int64_t bytes, uint32_t word);

}  // namespace bowline::kernels::cuda

#endif  // BOWLINE_KERNELS_CUDA_FILL_PROGRAM_H_
