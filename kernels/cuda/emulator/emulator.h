#ifndef BOWLINE_KERNELS_CUDA_EMULATOR_EMULATOR_H_
#define BOWLINE_KERNELS_CUDA_EMULATOR_EMULATOR_H_

// Executes the device functions of kernels/cuda on this processor, for tests: the same sources, compiled without CUDA.
// Blocks run one after another and threads of a block as fibers, both in an order that the seed chooses, so that a
// result that depends on it shows. Shared memory is filled with NaN before each block. Copies that a kernel starts
// without waiting (cp.async) happen no earlier than it waits for them.
//
// Sums of matrix instructions are in f32, in another order than a GPU's.

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/cuda/fibers.h"
#include "kernels/cuda/kernel_program.h"

namespace bowline::emulator {

// Returns kInvalidArgument where the launch does not fit the function: its name, the number, types or sizes of its
// parameters, its threads, a grid that no GPU launches.
absl::Status Launch(const kernels::cuda::DeviceLaunch& launch, absl::Span<void* const> arguments, void* scratch,
                    uint64_t seed);

// The same without executing anything, for any addresses of that many arguments. Also refuses an offset beyond the
// workspace of scratch_bytes.
absl::Status Check(const kernels::cuda::DeviceLaunch& launch, size_t arguments, size_t scratch_bytes);

// All launches of a program, in order; it has no products.
absl::Status Execute(const kernels::cuda::KernelProgram& program, absl::Span<void* const> arguments, void* scratch,
                     uint64_t seed);

std::vector<std::string> FunctionNames();

// Returns null where there is no function of that name.
const Function* FindFunction(const std::string& name);

}  // namespace bowline::emulator

#endif  // BOWLINE_KERNELS_CUDA_EMULATOR_EMULATOR_H_
