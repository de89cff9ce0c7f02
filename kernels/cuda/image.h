#ifndef BOWLINE_KERNELS_CUDA_IMAGE_H_
#define BOWLINE_KERNELS_CUDA_IMAGE_H_

// The image of the device functions that programs (kernel_program.h) launch, for all architectures of
// BOWLINE_CUDA_ARCHITECTURES, as cuModuleLoadData reads it. The library bowline_cuda_image holds it; it needs nvcc.

#include <cstddef>

extern "C" {
extern const unsigned char bowline_cuda_fatbin[];
extern const size_t bowline_cuda_fatbin_size;
}

#endif  // BOWLINE_KERNELS_CUDA_IMAGE_H_
