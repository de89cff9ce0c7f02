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

// The bytes of all buffers of space External, by the kind of their memory.
struct ExternalBytes {
  uint64_t in_place = 0;  // memory of the caller, which the device reads
  uint64_t copied = 0;    // memory of the device, one allocation for each buffer
};

// Each buffer has memory of the caller, or of the device, or none yet.
class ExternalMemory {
 public:
  // `plan` is verified; both outlive it.
  ExternalMemory(const fbs::Plan& plan, uint32_t role, hal::Device& device);

  // Returns whether the buffer is one of these buffers.
  bool Has(uint32_t buffer) const { return places_.count(buffer) > 0; }
  // kFailedPrecondition, naming a buffer that has no memory yet.
  absl::Status CheckComplete() const { return missing_ == 0 ? absl::OkStatus() : DescribeMissing(); }
  ExternalBytes bytes() const;
  // The address at which commands read the buffer; 0 while it has no memory.
  hal::DeviceAddress AddressOf(uint32_t buffer) const { return places_.at(buffer).address; }

  // Makes `memory`, which has the buffer's size and which `owner` keeps as it is, the memory of the buffer. Returns
  // false, and changes nothing, if commands of the device cannot read it there: the device does not reach it, or it
  // does not lie at a multiple of the buffer's alignment.
  bool Borrow(uint32_t buffer, absl::Span<const uint8_t> memory, const std::shared_ptr<const void>& owner);

  // Read and write [offset, offset + size), which lies in the buffer. A buffer that was written has memory of the
  // device from then on. kFailedPrecondition for a read of a buffer without memory; kResourceExhausted when the device
  // has no memory for it.
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
