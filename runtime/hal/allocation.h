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

  // The size that was asked for, not rounded up.
  virtual size_t bytes() const = 0;

  // The first byte as commands of the device see it.
  virtual DeviceAddress address() const = 0;

  // The first byte as the host sees it, for MemorySpace::kPinnedHost. Null for memory that the host reaches by Read and
  // Write alone.
  virtual uint8_t* host() const = 0;

  // Copy between host memory and [offset, offset + size). Both wait for nothing: the caller synchronises streams that
  // touch the bytes.
  virtual absl::Status Write(size_t offset, absl::Span<const uint8_t> from) = 0;
  virtual absl::Status Read(size_t offset, absl::Span<uint8_t> to) const = 0;

  // Contract
  //   address() is a multiple of 4096 and does not change. Numbers from address() to address() + bytes() belong to this
  //   allocation alone. The bytes are undefined before the first write. Write and Read outside of bytes() are
  //   kInvalidArgument and transfer nothing.
};

// kInvalidArgument unless [offset, offset + size) lies in `bytes`. Write and Read begin with this check.
absl::Status CheckTransfer(size_t offset, size_t size, size_t bytes);

}  // namespace bowline::hal

#endif  // BOWLINE_RUNTIME_HAL_ALLOCATION_H_
