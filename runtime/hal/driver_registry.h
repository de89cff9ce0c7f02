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

// Creates devices by the name of their driver. A driver was added, or is a plugin (runtime/hal/driver_plugin.h): the
// shared library libbowline_NAME.so has the driver NAME. A registry is a value, not global state, so that code shows
// where it chooses the available drivers (runtime/drivers/builtin_drivers.h).
class DriverRegistry {
 public:
  // Adds a driver. kAlreadyExists if the name is taken.
  absl::Status Add(const std::string& name, DeviceFactory factory);

  // Sets the folders to search for plugins, the first folder first.
  void SearchPluginsIn(std::vector<std::string> folders) { folders_ = std::move(folders); }

  // Creates a device of the driver `name`. Returns kNotFound, listing the added drivers and the searched folders;
  // kUnavailable, with the reason, if a plugin does not load; otherwise the errors of the driver itself.
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

// Returns kInvalidArgument, saying which rule the text breaks.
absl::StatusOr<DriverChoice> ParseDriverChoice(absl::string_view text);

// Returns kInvalidArgument for a setting that `known` does not list; names the driver, the setting and all of `known`.
absl::Status CheckSettings(absl::string_view driver, const DeviceOptions& options,
                           std::initializer_list<absl::string_view> known);

// Contract
//   One thread fills a registry. After that, several threads may call its const functions at once, which call the
//   factories: a factory must be safe to call from several threads.
//   The caller owns the device, which may outlive the registry. The library of a plugin stays loaded.
//   An added driver takes precedence over a plugin of its name. The first folder that has the plugin decides: if the
//   plugin does not load, no other folder is searched. A plugin's name consists of lower-case letters, digits, '_' and
//   '-'; no other name is searched for. A factory returns the same errors as DriverPlugin::create.

}  // namespace bowline::hal

#endif  // BOWLINE_RUNTIME_HAL_DRIVER_REGISTRY_H_
