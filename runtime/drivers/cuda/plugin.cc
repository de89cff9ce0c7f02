#include "runtime/drivers/cuda/cuda_device.h"
#include "runtime/hal/driver_plugin.h"

BOWLINE_DRIVER_PLUGIN(&bowline::CreateCudaDevice)
