#include "runtime/drivers/discrete/discrete_device.h"
#include "runtime/hal/driver_plugin.h"

BOWLINE_DRIVER_PLUGIN(&bowline::CreateDiscreteDevice)
