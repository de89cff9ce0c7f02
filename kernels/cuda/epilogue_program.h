#ifndef BOWLINE_KERNELS_CUDA_EPILOGUE_PROGRAM_H_
#define BOWLINE_KERNELS_CUDA_EPILOGUE_PROGRAM_H_

#include "kernels/cuda/kernel_program.h"

namespace bowline::kernels::cuda {

// A product without an epilogue, and then a launch of epilogue.cu that computes the rest.
struct EpilogueStep {
  LibraryProduct product;              // whose arguments 0, 1 and 2 are these addresses
  std::array<Parameter, 3> addresses;  // of A, B and the product
  DeviceLaunch launch;
};

struct EpilogueProgram {
  size_t workspace_bytes = 0;  // of each product, at the beginning of the kernel's workspace
  std::vector<EpilogueStep> steps;
};

// The least workspace of an epilogue whose C is bf16.
inline constexpr size_t kLeastEpilogueWorkspace = size_t{64} << 10;

// A product with an epilogue, for a library that has no algorithm for both at once. Results are rounded as the library
// rounds them, once, from f32: a C of f32 is the product first, and then C; where C is bf16, tiles of the product are
// f32 in the workspace, and become tiles of C one after another. Returns kFailedPrecondition if the workspace is too
// small for that.
absl::StatusOr<EpilogueProgram> ProgramWithoutLibraryEpilogue(const LibraryProduct& product, size_t scratch_bytes);

}  // namespace bowline::kernels::cuda

#endif  // BOWLINE_KERNELS_CUDA_EPILOGUE_PROGRAM_H_
