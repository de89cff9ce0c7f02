// A plugin of another build.

#include "runtime/hal/driver_plugin.h"

extern "C" __attribute__((visibility("default"))) const bowline::hal::DriverPlugin* bowline_driver_plugin() {
  static const bowline::hal::DriverPlugin plugin = {
      "0000000000000000",
      [](const bowline::hal::DeviceOptions&) -> absl::StatusOr<std::unique_ptr<bowline::hal::Device>> {
        return absl::InternalError("was called");
      }};
  return &plugin;
}
