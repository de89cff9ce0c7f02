#ifndef BOWLINE_RUNTIME_DRIVERS_BUILTIN_DRIVERS_H_
#define BOWLINE_RUNTIME_DRIVERS_BUILTIN_DRIVERS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "runtime/hal/driver_registry.h"

namespace bowline {

// "cpu" and "null", which every build has, and nothing else.
hal::DriverRegistry BuiltinDrivers();

// Those and plugins, looked for in `folders` (several are divided by ':'; may be empty), those of the environment's
// BOWLINE_DRIVER_PATH, the folder of this program, and lib beside it.
hal::DriverRegistry AllDrivers(absl::string_view folders);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_BUILTIN_DRIVERS_H_
