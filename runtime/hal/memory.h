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

// Contract
//   An address is a value, which any thread may hold and add to. It means something to its own device alone, and only
//   as long as its allocation is there, which nobody keeps by holding an address. 0 is no address: who needs no memory,
//   such as a kernel without scratch, gives 0. What a command reads and writes from an address on lies within one
//   allocation, or within what Device::AddressOfHost was given. A device need not notice what does not: the verifier of
//   plans proves it. All commands may use memory of kDevice. Memory of kPinnedHost is for Stream::Copy and for the
//   host.

}  // namespace bowline::hal

#endif  // BOWLINE_RUNTIME_HAL_MEMORY_H_
