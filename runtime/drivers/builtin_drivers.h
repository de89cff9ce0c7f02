#ifndef BOWLINE_RUNTIME_DRIVERS_BUILTIN_DRIVERS_H_
#define BOWLINE_RUNTIME_DRIVERS_BUILTIN_DRIVERS_H_

#include "runtime/hal/driver_registry.h"

namespace bowline {

// "cpu" and "null".
hal::DriverRegistry BuiltinDrivers();

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_BUILTIN_DRIVERS_H_
