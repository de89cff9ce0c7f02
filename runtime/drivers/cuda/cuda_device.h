#ifndef BOWLINE_RUNTIME_DRIVERS_CUDA_CUDA_DEVICE_H_
#define BOWLINE_RUNTIME_DRIVERS_CUDA_CUDA_DEVICE_H_

#include <memory>

#include "runtime/hal/device.h"

namespace bowline {

// Creates the device of an NVIDIA card: see README.md. Settings: device, poison, blocking, tf32, tune, libraries.
// Returns kUnavailable if there is no driver or no card.
absl::StatusOr<std::unique_ptr<hal::Device>> CreateCudaDevice(const hal::DeviceOptions& options);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_CUDA_CUDA_DEVICE_H_
