#ifndef BOWLINE_RUNTIME_HAL_DRIVER_REGISTRY_H_
#define BOWLINE_RUNTIME_HAL_DRIVER_REGISTRY_H_

#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "runtime/base/status.h"
#include "runtime/hal/device.h"

namespace bowline::hal {

using DeviceFactory = std::function<absl::StatusOr<std::unique_ptr<Device>>(const DeviceOptions& options)>;

// Drivers by name: those that were added, and plugins (runtime/hal/driver_plugin.h), of which the driver NAME is the
// shared library libbowline_NAME.so. A value without global state, so that the available drivers are seen where they
// are decided (runtime/drivers/builtin_drivers.h).
class DriverRegistry {
 public:
  // kAlreadyExists when the name is taken.
  absl::Status Add(const std::string& name, DeviceFactory factory);

  // Sets the folders in which plugins are looked for, the first folder first.
  void SearchPluginsIn(std::vector<std::string> folders) { folders_ = std::move(folders); }

  // Creates a device of the driver `name`. kNotFound, listing the drivers that are there and the folders that were
  // searched; kUnavailable saying why a plugin does not load; else the driver's own errors.
  absl::StatusOr<std::unique_ptr<Device>> CreateDevice(const std::string& name, const DeviceOptions& options) const;

  // The names of the drivers that were added, sorted.
  std::vector<std::string> Names() const;

 private:
  std::map<std::string, DeviceFactory> factories_;
  std::vector<std::string> folders_;
};

// A driver as users choose it: "NAME" or "NAME:KEY=VALUE,KEY=VALUE".
struct DriverChoice {
  std::string name;
  std::map<std::string, std::string> settings;
};

// kInvalidArgument naming the error in the text.
absl::StatusOr<DriverChoice> ParseDriverChoice(absl::string_view text);

// kInvalidArgument for a setting that is not among `known`, naming the driver, the setting and the known ones.
absl::Status CheckSettings(absl::string_view driver, const DeviceOptions& options,
                           std::initializer_list<absl::string_view> known);

// Contract
//   One thread makes a registry. When it is complete, several may call its const functions at once, and so the
//   factories: a factory is safe to call from several threads.
//   The caller owns the device, which needs the registry no more. The library of a plugin stays loaded.
//   A driver that was added comes before a plugin of its name, and the first folder that has a plugin decides: where
//   that one does not load, no other folder is searched. A name with other characters than lower-case letters, digits,
//   '_' and '-' names no file. A factory fails as DriverPlugin::create does.

}  // namespace bowline::hal

#endif  // BOWLINE_RUNTIME_HAL_DRIVER_REGISTRY_H_
