#ifndef BOWLINE_RUNTIME_HAL_MEMORY_H_
#define BOWLINE_RUNTIME_HAL_MEMORY_H_

#include <cstdint>

namespace bowline::hal {

// A place in memory as commands of one device see it: a number, to which bytes are added. Only the device's driver
// knows what it stands for; the host reads and writes through Allocation.
using DeviceAddress = uint64_t;

// The kind of memory in which an allocation is.
enum class MemorySpace {
  kDevice,      // where kernels run
  kPinnedHost,  // memory of the host that copies of the device reach, and the host itself: see Allocation::host; no
                // kernel takes addresses of it
};

}  // namespace bowline::hal

#endif  // BOWLINE_RUNTIME_HAL_MEMORY_H_
