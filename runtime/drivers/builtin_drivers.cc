#include "runtime/drivers/builtin_drivers.h"

#include "runtime/drivers/cpu/cpu_device.h"
#include "runtime/drivers/null/null_device.h"

namespace bowline {

hal::DriverRegistry BuiltinDrivers() {
  hal::DriverRegistry registry;
  // Add fails for duplicates alone.
  registry.Add("cpu", &CreateCpuDevice).IgnoreError();
  registry.Add("null", &CreateNullDevice).IgnoreError();
  return registry;
}

}  // namespace bowline
