#ifndef BOWLINE_KERNELS_CUDA_MATMUL_PROGRAM_H_
#define BOWLINE_KERNELS_CUDA_MATMUL_PROGRAM_H_

#include "kernels/cuda/kernel_program.h"

namespace bowline::kernels::cuda {

// The product of `matmul`, by the library, with the epilogues of kernels/registry/product_epilogue.h that the library
// computes as they are defined. kInvalidArgument for what ParseProduct refuses, and
//   an epilogue that is generated, and a packed B, which are forms for processors;
//   an epilogue with an operand of which neither rows nor columns are contiguous, as one call has to compute it;
//   GELU with a C of f32: the library does not say how exactly it computes tanh, and bf16 has 8 bits;
//   a matrix besides C with rows of no multiple of 8 elements (CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD);
//   sums with a C of bf16, whose type they would have.
absl::StatusOr<KernelProgram> MatmulProgram(const Signature& signature);

}  // namespace bowline::kernels::cuda

#endif  // BOWLINE_KERNELS_CUDA_MATMUL_PROGRAM_H_
