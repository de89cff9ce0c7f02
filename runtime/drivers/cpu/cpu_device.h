#ifndef BOWLINE_RUNTIME_DRIVERS_CPU_CPU_DEVICE_H_
#define BOWLINE_RUNTIME_DRIVERS_CPU_CPU_DEVICE_H_

#include <memory>
#include <string>

#include "runtime/drivers/cpu/host_cpu.h"
#include "runtime/hal/device.h"

namespace bowline {

// The host: kernels of the registry and generated x86-64 code, on teams of options.threads threads.
absl::StatusOr<std::unique_ptr<hal::Device>> CreateCpuDevice(const hal::DeviceOptions& options);

// The same device with the processor `cpu` in place of this machine's. Only the answers of CheckTarget differ.
absl::StatusOr<std::unique_ptr<hal::Device>> CreateCpuDeviceAs(const hal::DeviceOptions& options,
                                                               const CpuFeatures& cpu);

// Returns the machine's name as uname gives it: "x86_64", "aarch64".
std::string HostArch();

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_CPU_CPU_DEVICE_H_
