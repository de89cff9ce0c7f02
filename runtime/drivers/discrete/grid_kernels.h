#ifndef BOWLINE_RUNTIME_DRIVERS_DISCRETE_GRID_KERNELS_H_
#define BOWLINE_RUNTIME_DRIVERS_DISCRETE_GRID_KERNELS_H_

#include <memory>

#include "kernels/registry/registry.h"
#include "runtime/base/status.h"
#include "runtime/hal/executable.h"

namespace bowline {

// Kernels of the registry that this device has of its own (kernels/discrete/kernel_needs.h), as blocks of threads that
// run in any order. They give the same bits as those of CPUs.
//
// kNotFound for other names, and where a plan that was compiled for CPUs has less workspace for one than it needs;
// kInvalidArgument for what the kernel of a CPU refuses too.
absl::StatusOr<std::unique_ptr<hal::Launchable>> CreateGridKernel(const kernels::Signature& signature);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_DISCRETE_GRID_KERNELS_H_
