#ifndef BOWLINE_RUNTIME_DRIVERS_DISCRETE_GRID_KERNELS_H_
#define BOWLINE_RUNTIME_DRIVERS_DISCRETE_GRID_KERNELS_H_

#include <memory>

#include "kernels/registry/registry.h"
#include "runtime/base/status.h"
#include "runtime/hal/executable.h"

namespace bowline {

// Makes this device's own kernels of the registry (kernels/discrete/kernel_needs.h), as blocks of threads that run in
// any order. They give the same bits as the kernels of CPUs.
//
// Returns kNotFound for other names, and if a plan that was compiled for CPUs has too little workspace for the kernel;
// kInvalidArgument for a signature that the kernel of a CPU refuses too.
absl::StatusOr<std::unique_ptr<hal::Launchable>> CreateGridKernel(const kernels::Signature& signature);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_DISCRETE_GRID_KERNELS_H_
