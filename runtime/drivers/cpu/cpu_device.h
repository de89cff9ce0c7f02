#ifndef BOWLINE_RUNTIME_DRIVERS_CPU_CPU_DEVICE_H_
#define BOWLINE_RUNTIME_DRIVERS_CPU_CPU_DEVICE_H_

#include <memory>
#include <string>

#include "runtime/drivers/cpu/host_cpu.h"
#include "runtime/hal/device.h"

namespace bowline {

// The host: kernels of the registry and generated x86-64 code, on teams of options.threads threads.
absl::StatusOr<std::unique_ptr<hal::Device>> CreateCpuDevice(const hal::DeviceOptions& options);

// The same as if this machine's processor were `cpu`, which changes the answers of CheckTarget and nothing else.
absl::StatusOr<std::unique_ptr<hal::Device>> CreateCpuDeviceAs(const hal::DeviceOptions& options,
                                                               const CpuFeatures& cpu);

// "x86_64", "aarch64": the machine's name by uname.
std::string HostArch();

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_CPU_CPU_DEVICE_H_
