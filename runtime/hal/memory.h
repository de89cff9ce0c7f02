#ifndef BOWLINE_RUNTIME_HAL_MEMORY_H_
#define BOWLINE_RUNTIME_HAL_MEMORY_H_

#include <cstdint>

namespace bowline::hal {

// A place in memory as commands of one device see it: a number, to which bytes are added. Only the device's driver
// knows its meaning; the host reads and writes through Allocation.
using DeviceAddress = uint64_t;

// The kind of memory in which an allocation is.
enum class MemorySpace {
  kDevice,      // where kernels run
  kPinnedHost,  // memory of the host that copies of the device reach, and the host itself: see Allocation::host; no
                // kernel takes addresses of it
};

// Contract
//   An address is a value, which any thread may hold and add to. It means something to its own device alone, and only
//   as long as its allocation exists; holding an address does not keep the allocation. 0 is no address: a command
//   without memory, such as a kernel without scratch, gives 0. The bytes that a command accesses from an address lie in
//   one allocation, or in the memory given to Device::AddressOfHost. The verifier of plans proves this, so a device
//   need not check it. All commands may use memory of kDevice. Memory of kPinnedHost is for Stream::Copy and for the
//   host.

}  // namespace bowline::hal

#endif  // BOWLINE_RUNTIME_HAL_MEMORY_H_
