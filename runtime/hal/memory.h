#ifndef BOWLINE_RUNTIME_HAL_MEMORY_H_
#define BOWLINE_RUNTIME_HAL_MEMORY_H_

#include <cstdint>

namespace bowline::hal {

// The address of a byte as commands of one device use it; adding a number of bytes gives a later byte's address. Only
// the device's driver knows its meaning: the host reads and writes memory through Allocation.
using DeviceAddress = uint64_t;

// The kind of memory in which an allocation is.
enum class MemorySpace {
  kDevice,      // memory that kernels access
  kPinnedHost,  // host memory, which the host (Allocation::host) and copies of the device access;
                // kernels take no address in it
};

// Contract
//   An address is a value, which any thread may hold and add to. It is valid on its own device only, and only while
//   its allocation exists; it does not keep the allocation alive. 0 is not an address: a command that needs no memory,
//   such as a kernel without scratch, passes 0. The bytes that a command accesses from an address on lie in one
//   allocation, or in the memory given to Device::AddressOfHost. The plan verifier proves this, so that a device need
//   not check it. All commands may use memory of kDevice. Only Stream::Copy and the host itself may use memory of
//   kPinnedHost.

}  // namespace bowline::hal

#endif  // BOWLINE_RUNTIME_HAL_MEMORY_H_
