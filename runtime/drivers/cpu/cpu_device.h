#ifndef BOWLINE_RUNTIME_DRIVERS_CPU_CPU_DEVICE_H_
#define BOWLINE_RUNTIME_DRIVERS_CPU_CPU_DEVICE_H_

#include <memory>
#include <string>

#include "runtime/hal/device.h"

namespace bowline {

// The host: kernels of the registry and generated x86-64 code on one pool of options.threads threads.
absl::StatusOr<std::unique_ptr<hal::Device>> CreateCpuDevice(const hal::DeviceOptions& options);

// The highest of "x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4" that this machine has; the machine's name elsewhere.
// Levels as the x86-64 psABI defines them.
std::string HostCpuLevel();

// "x86_64", "aarch64": what uname says.
std::string HostArch();

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_CPU_CPU_DEVICE_H_
