#ifndef BOWLINE_RUNTIME_HAL_DRIVER_REGISTRY_H_
#define BOWLINE_RUNTIME_HAL_DRIVER_REGISTRY_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/hal/device.h"

namespace bowline::hal {

using DeviceFactory = std::function<absl::StatusOr<std::unique_ptr<Device>>(const DeviceOptions& options)>;

// Drivers by name. A value without global state, so that what is available is seen where it is decided
// (runtime/drivers/builtin_drivers.h).
class DriverRegistry {
 public:
  // kAlreadyExists when the name is taken.
  absl::Status Add(const std::string& name, DeviceFactory factory);

  // kNotFound listing the known names.
  absl::StatusOr<std::unique_ptr<Device>> CreateDevice(const std::string& name, const DeviceOptions& options) const;

  // Sorted.
  std::vector<std::string> Names() const;

 private:
  std::map<std::string, DeviceFactory> factories_;
};

}  // namespace bowline::hal

#endif  // BOWLINE_RUNTIME_HAL_DRIVER_REGISTRY_H_
