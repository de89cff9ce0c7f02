#ifndef BOWLINE_RUNTIME_EXECUTOR_EXTERNAL_MEMORY_H_
#define BOWLINE_RUNTIME_EXECUTOR_EXTERNAL_MEMORY_H_

// The memory of one role's buffers of space External. Private to runtime/executor.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "absl/types/span.h"
#include "runtime/base/status.h"
#include "runtime/hal/device.h"
#include "runtime/plan/plan_generated.h"

namespace bowline {

// The bytes of all buffers of space External that have memory, by the kind of that memory.
struct ExternalBytes {
  uint64_t in_place = 0;  // the caller's memory, which the device reads in place
  uint64_t copied = 0;    // the device's memory, one allocation per buffer
};

// Holds the memory of each buffer of space External: the caller's memory, the device's, or none yet.
class ExternalMemory {
 public:
  // `plan` is verified. `plan` and `device` outlive this object.
  ExternalMemory(const fbs::Plan& plan, uint32_t role, hal::Device& device);

  // Returns whether the buffer is of space External and of this role.
  bool Has(uint32_t buffer) const { return places_.count(buffer) > 0; }
  // Returns kFailedPrecondition if a buffer has no memory yet; the message names it.
  absl::Status CheckComplete() const { return missing_ == 0 ? absl::OkStatus() : DescribeMissing(); }
  ExternalBytes bytes() const;
  // The device address of the buffer's first byte; 0 while the buffer has no memory.
  hal::DeviceAddress AddressOf(uint32_t buffer) const { return places_.at(buffer).address; }

  // Makes `memory` the memory of the buffer, without a copy. `memory` has the buffer's size, and `owner` keeps it alive
  // and unchanged. Returns false, and changes nothing, if the device cannot read `memory` in place: the device does not
  // reach it, or its address is not a multiple of the buffer's alignment.
  bool Borrow(uint32_t buffer, absl::Span<const uint8_t> memory, const std::shared_ptr<const void>& owner);

  // Copy the bytes [offset, offset + size), which lie in the buffer. The first Write allocates memory of the device for
  // the buffer; bytes that it leaves out keep their borrowed values. Returns kFailedPrecondition for a Read of a buffer
  // without memory; kResourceExhausted if the device cannot allocate the memory.
  absl::Status Read(uint32_t buffer, uint64_t offset, absl::Span<uint8_t> to) const;
  absl::Status Write(uint32_t buffer, uint64_t offset, absl::Span<const uint8_t> from);

 private:
  struct Place {
    absl::Span<const uint8_t> borrowed;
    std::shared_ptr<const void> owner;
    std::unique_ptr<hal::Allocation> own;
    hal::DeviceAddress address = 0;
  };

  absl::Status DescribeMissing() const;
  void Give(Place& place, hal::DeviceAddress address);

  const fbs::Plan& plan_;
  hal::Device& device_;
  std::map<uint32_t, Place> places_;  // by buffer
  size_t missing_ = 0;                // number of buffers without memory
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_EXECUTOR_EXTERNAL_MEMORY_H_
