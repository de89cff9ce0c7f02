#ifndef BOWLINE_RUNTIME_DRIVERS_BUILTIN_DRIVERS_H_
#define BOWLINE_RUNTIME_DRIVERS_BUILTIN_DRIVERS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "runtime/hal/driver_registry.h"

namespace bowline {

// Returns the drivers "cpu" and "null" only. Every build has them.
hal::DriverRegistry BuiltinDrivers();

// Returns the drivers of BuiltinDrivers and those of plugins. Plugins are found in `folders` (separated by ':'; may be
// empty), in the folders of BOWLINE_DRIVER_PATH, in the folder of this program, and in lib beside that folder.
hal::DriverRegistry AllDrivers(absl::string_view folders);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_BUILTIN_DRIVERS_H_
