#ifndef BOWLINE_RUNTIME_DRIVERS_HOST_HOST_ALLOCATION_H_
#define BOWLINE_RUNTIME_DRIVERS_HOST_HOST_ALLOCATION_H_

#include <memory>
#include <utility>

#include "runtime/base/page_memory.h"
#include "runtime/hal/allocation.h"

namespace bowline {

// Host memory (page_memory.h). Its addresses are the host's pointers.
class HostAllocation : public hal::Allocation {
 public:
  // Returns kResourceExhausted when the system has no such memory.
  static absl::StatusOr<std::unique_ptr<HostAllocation>> Create(size_t bytes, hal::MemorySpace space);

  uint8_t* data() const { return memory_.data(); }

  size_t bytes() const override { return memory_.bytes(); }
  hal::DeviceAddress address() const override;
  uint8_t* host() const override { return space_ == hal::MemorySpace::kPinnedHost ? data() : nullptr; }
  absl::Status Write(size_t offset, absl::Span<const uint8_t> from) override;
  absl::Status Read(size_t offset, absl::Span<uint8_t> to) const override;

 private:
  HostAllocation(PageMemory memory, hal::MemorySpace space) : memory_(std::move(memory)), space_(space) {}

  PageMemory memory_;
  hal::MemorySpace space_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_HOST_HOST_ALLOCATION_H_
