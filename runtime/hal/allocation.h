#ifndef BOWLINE_RUNTIME_HAL_ALLOCATION_H_
#define BOWLINE_RUNTIME_HAL_ALLOCATION_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "runtime/base/status.h"
#include "runtime/hal/memory.h"

namespace bowline::hal {

// Memory of one device.
class Allocation {
 public:
  virtual ~Allocation() = default;

  // The size in bytes that the caller asked for, not rounded up.
  virtual size_t bytes() const = 0;

  // The address of the first byte, as commands of the device use it.
  virtual DeviceAddress address() const = 0;

  // The first byte in the host's address space, for MemorySpace::kPinnedHost. Null for memory that the host reaches
  // only through Read and Write.
  virtual uint8_t* host() const = 0;

  // Copy between host memory and the bytes [offset, offset + size). Neither waits for a stream: the caller first
  // synchronises the streams that touch the bytes.
  virtual absl::Status Write(size_t offset, absl::Span<const uint8_t> from) = 0;
  virtual absl::Status Read(size_t offset, absl::Span<uint8_t> to) const = 0;

  // Contract
  //   address() is a multiple of 4096 and never changes. The addresses from address() to address() + bytes() belong to
  //   this allocation alone. The bytes are undefined before the first write. Write and Read return kInvalidArgument and
  //   copy nothing if their range exceeds bytes().
};

// Returns kInvalidArgument unless [offset, offset + size) lies within `bytes` bytes. Write and Read call this first.
absl::Status CheckTransfer(size_t offset, size_t size, size_t bytes);

}  // namespace bowline::hal

#endif  // BOWLINE_RUNTIME_HAL_ALLOCATION_H_
