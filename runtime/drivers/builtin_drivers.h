#ifndef BOWLINE_RUNTIME_DRIVERS_BUILTIN_DRIVERS_H_
#define BOWLINE_RUNTIME_DRIVERS_BUILTIN_DRIVERS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "runtime/hal/driver_registry.h"

namespace bowline {

// The drivers "cpu" and "null", which every build has, and no others.
hal::DriverRegistry BuiltinDrivers();

// The drivers of BuiltinDrivers and plugins. These are looked for in `folders` (several are divided by ':'; may be
// empty), in those of the environment's BOWLINE_DRIVER_PATH, in the folder of this program, and in lib beside it.
hal::DriverRegistry AllDrivers(absl::string_view folders);

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_BUILTIN_DRIVERS_H_
