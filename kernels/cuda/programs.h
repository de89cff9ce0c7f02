#ifndef BOWLINE_KERNELS_CUDA_PROGRAMS_H_
#define BOWLINE_KERNELS_CUDA_PROGRAMS_H_

// The kernels that CUDA devices have, one function per kernel: those that CMake registers
// (BOWLINE_CUDA_KERNELS in CMakeLists.txt), each defined in the file of its family, such as embedding_program.cc.

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cuda/kernel_program.h"
#include "kernels/registry/registry.h"

namespace bowline::kernels::cuda {

struct CudaKernel {
  absl::StatusOr<KernelProgram> (*program)(const Signature& signature);
  // The attributes that `program` hands to its functions, or refuses. ProgramOf refuses any other attribute, because no
  // function would compute it.
  std::vector<std::string_view> attributes;
};

#define BOWLINE_CUDA_KERNEL(Name, name) CudaKernel Name##Cuda();
#include "kernels/cuda/kernels.inc"  // IWYU pragma: keep
#undef BOWLINE_CUDA_KERNEL

}  // namespace bowline::kernels::cuda

#endif  // BOWLINE_KERNELS_CUDA_PROGRAMS_H_
