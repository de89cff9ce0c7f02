#ifndef BOWLINE_RUNTIME_DRIVERS_DISCRETE_DISCRETE_KERNELS_H_
#define BOWLINE_RUNTIME_DRIVERS_DISCRETE_DISCRETE_KERNELS_H_

#include <memory>

#include "kernels/registry/registry.h"
#include "runtime/base/status.h"
#include "runtime/hal/executable.h"

namespace bowline {

// Kernels that only this device has. Both are launched by grid, on arguments at multiples of 256 bytes.
//
//   discrete_fill       out f32[...] = the constant's low 32 bits as an f32. Blocks and threads in one dimension;
//   thread
//                       t of block b, of n threads in all, writes the elements b * threads + t, that + n, and so on.
//   discrete_transpose  in f32[rows, columns], out f32[columns, rows]. A block of threads x * y passes a tile of y rows
//                       and x columns through x * y * 4 bytes of shared memory; blocks x * y cover the matrix.
//
// kNotFound for other names, kInvalidArgument for a signature that is not as above.
absl::StatusOr<std::unique_ptr<hal::Launchable>> CreateDiscreteKernel(const kernels::Signature& signature);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_DISCRETE_DISCRETE_KERNELS_H_
