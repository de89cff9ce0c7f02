#ifndef BOWLINE_RUNTIME_HAL_DRIVER_PLUGIN_H_
#define BOWLINE_RUNTIME_HAL_DRIVER_PLUGIN_H_

#include <memory>

#include "runtime/base/status.h"
#include "runtime/hal/device.h"
#include "runtime/hal/interface_hash.h"

namespace bowline::hal {

// The driver NAME that a shared library libbowline_NAME.so exports. Its interface is that of C++, so a plugin
// belongs to the build that it was made with: both know a hash of the headers that they have in common.
struct DriverPlugin {
  const char* interface_hash = kInterfaceHash;
  absl::StatusOr<std::unique_ptr<Device>> (*create)(const DeviceOptions& options) = nullptr;
};

// The one function that is looked up: extern "C" const DriverPlugin* bowline_driver_plugin().
using DriverPluginFunction = const DriverPlugin* (*)();
inline constexpr char kDriverPluginFunction[] = "bowline_driver_plugin";

// Contract
//   The library is loaded once, and stays loaded until the process ends. It keeps the returned DriverPlugin, which is
//   the same in all calls, and devices and their threads may use its code until then.
//   Several threads may call the function, and `create`, at once. The caller owns the device that `create` returns.
//   Where `interface_hash` is another than the program's, `create` is not called.
//   Errors of `create`: kInvalidArgument for a setting that the driver does not have (CheckSettings) or whose value it
//   cannot use; kUnavailable, naming the missing part, where the machine has no such device or no library for it. No
//   exception leaves it.

}  // namespace bowline::hal

// Defines that function. A plugin uses it in one source file, outside of namespaces.
#define BOWLINE_DRIVER_PLUGIN(create_device)                                                                    \
  extern "C" __attribute__((visibility("default"))) const bowline::hal::DriverPlugin* bowline_driver_plugin() { \
    static const bowline::hal::DriverPlugin plugin = {bowline::hal::kInterfaceHash, create_device};             \
    return &plugin;                                                                                             \
  }

#endif  // BOWLINE_RUNTIME_HAL_DRIVER_PLUGIN_H_
