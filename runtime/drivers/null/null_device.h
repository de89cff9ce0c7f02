#ifndef BOWLINE_RUNTIME_DRIVERS_NULL_NULL_DEVICE_H_
#define BOWLINE_RUNTIME_DRIVERS_NULL_NULL_DEVICE_H_

#include <cstdint>
#include <memory>

#include "runtime/hal/device.h"

namespace bowline {

// A device that accepts every command and executes none, so that a run is only the runtime's own work. It is also the
// template of a new driver; see README.md.
absl::StatusOr<std::unique_ptr<hal::Device>> CreateNullDevice(const hal::DeviceOptions& options);

// Commands that a null device's streams have accepted.
struct NullCounts {
  uint64_t launches = 0;
  uint64_t copies = 0;
  uint64_t copied_bytes = 0;
  uint64_t calls = 0;
  uint64_t records = 0;
  uint64_t waits = 0;
  uint64_t synchronizations = 0;
};

// `device` must be a null device.
NullCounts CountsOf(const hal::Device& device);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_NULL_NULL_DEVICE_H_
