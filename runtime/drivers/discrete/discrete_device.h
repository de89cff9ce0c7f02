#ifndef BOWLINE_RUNTIME_DRIVERS_DISCRETE_DISCRETE_DEVICE_H_
#define BOWLINE_RUNTIME_DRIVERS_DISCRETE_DISCRETE_DEVICE_H_

#include <memory>

#include "runtime/hal/device.h"

namespace bowline {

// A device on this processor with memory of its own: see README.md. Setting: seed.
absl::StatusOr<std::unique_ptr<hal::Device>> CreateDiscreteDevice(const hal::DeviceOptions& options);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_DISCRETE_DISCRETE_DEVICE_H_
