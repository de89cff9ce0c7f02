#ifndef BOWLINE_RUNTIME_HAL_ALLOCATION_H_
#define BOWLINE_RUNTIME_HAL_ALLOCATION_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "runtime/base/status.h"

namespace bowline::hal {

// Memory of one device.
class Allocation {
 public:
  virtual ~Allocation() = default;

  // As asked for, not rounded up.
  virtual size_t bytes() const = 0;

  // The first byte as commands of the device see it.
  virtual uint8_t* address() const = 0;

  // True when the host may read and write through address().
  virtual bool host_visible() const = 0;

  // Between host memory and [offset, offset + size). Both wait for nothing: the caller synchronises streams that touch
  // the bytes.
  virtual absl::Status Write(size_t offset, absl::Span<const uint8_t> from) = 0;
  virtual absl::Status Read(size_t offset, absl::Span<uint8_t> to) const = 0;

  // Contract
  //   address() is a multiple of 4096 and does not change.
  //   The bytes are zero before the first write.
  //   Write and Read outside of bytes() are kInvalidArgument and transfer nothing.
};

}  // namespace bowline::hal

#endif  // BOWLINE_RUNTIME_HAL_ALLOCATION_H_
