#ifndef BOWLINE_RUNTIME_HAL_DRIVER_PLUGIN_H_
#define BOWLINE_RUNTIME_HAL_DRIVER_PLUGIN_H_

#include <memory>

#include "runtime/base/status.h"
#include "runtime/hal/device.h"
#include "runtime/hal/interface_hash.h"

namespace bowline::hal {

// What a shared library libbowline_NAME.so exports as the driver NAME. Its interface is that of C++, so a plugin
// belongs to the build that it was made with: both know a hash of the headers that they have in common.
struct DriverPlugin {
  const char* interface_hash = kInterfaceHash;
  absl::StatusOr<std::unique_ptr<Device>> (*create)(const DeviceOptions& options) = nullptr;
};

// The one function that is looked up: extern "C" const DriverPlugin* bowline_driver_plugin().
using DriverPluginFunction = const DriverPlugin* (*)();
inline constexpr char kDriverPluginFunction[] = "bowline_driver_plugin";

}  // namespace bowline::hal

// Defines that function. A plugin uses it in one source file, outside of namespaces.
#define BOWLINE_DRIVER_PLUGIN(create_device)                                                                    \
  extern "C" __attribute__((visibility("default"))) const bowline::hal::DriverPlugin* bowline_driver_plugin() { \
    static const bowline::hal::DriverPlugin plugin = {bowline::hal::kInterfaceHash, create_device};             \
    return &plugin;                                                                                             \
  }

#endif  // BOWLINE_RUNTIME_HAL_DRIVER_PLUGIN_H_
