#ifndef BOWLINE_RUNTIME_HAL_DRIVER_PLUGIN_H_
#define BOWLINE_RUNTIME_HAL_DRIVER_PLUGIN_H_

#include <memory>

#include "runtime/base/status.h"
#include "runtime/hal/device.h"
#include "runtime/hal/interface_hash.h"

namespace bowline::hal {

// The driver NAME that a shared library libbowline_NAME.so exports. Its interface is C++, so a plugin works only with
// the build that it was compiled with: plugin and program each contain a hash of the headers that they share.
struct DriverPlugin {
  const char* interface_hash = kInterfaceHash;
  absl::StatusOr<std::unique_ptr<Device>> (*create)(const DeviceOptions& options) = nullptr;
};

// The only symbol that the loader looks up: extern "C" const DriverPlugin* bowline_driver_plugin().
using DriverPluginFunction = const DriverPlugin* (*)();
inline constexpr char kDriverPluginFunction[] = "bowline_driver_plugin";

// Contract
//   The program loads the library once and never unloads it: devices and their threads may use its code until the
//   process ends. The library owns the returned DriverPlugin, and returns the same one in all calls.
//   Several threads may call the function, and `create`, at once. The caller owns the device that `create` returns.
//   The program does not call `create` if `interface_hash` differs from its own hash.
//   Errors of `create`: kInvalidArgument for a setting that the driver does not have (CheckSettings) or whose value it
//   cannot use; kUnavailable, naming the missing part, if the machine has no such device or no library for it. `create`
//   throws no exception.

}  // namespace bowline::hal

// Defines bowline_driver_plugin(). A plugin uses it in one source file, outside of namespaces.
#define BOWLINE_DRIVER_PLUGIN(create_device)                                                                    \
  extern "C" __attribute__((visibility("default"))) const bowline::hal::DriverPlugin* bowline_driver_plugin() { \
    static const bowline::hal::DriverPlugin plugin = {bowline::hal::kInterfaceHash, create_device};             \
    return &plugin;                                                                                             \
  }

#endif  // BOWLINE_RUNTIME_HAL_DRIVER_PLUGIN_H_
