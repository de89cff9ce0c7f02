#ifndef BOWLINE_RUNTIME_DRIVERS_HOST_HOST_ALLOCATION_H_
#define BOWLINE_RUNTIME_DRIVERS_HOST_HOST_ALLOCATION_H_

#include <memory>

#include "runtime/hal/allocation.h"

namespace bowline {

// Host memory from mmap: pages that are never touched cost nothing. It starts at a multiple of 2 MiB and asks for huge
// pages; the page after its last is inaccessible, so that a kernel that runs past the end stops there instead of in
// somebody else's memory. Addresses are pointers.
class HostAllocation : public hal::Allocation {
 public:
  // kResourceExhausted when the system has no such memory.
  static absl::StatusOr<std::unique_ptr<HostAllocation>> Create(size_t bytes, hal::MemorySpace space);

  ~HostAllocation() override;
  HostAllocation(const HostAllocation&) = delete;
  HostAllocation& operator=(const HostAllocation&) = delete;

  uint8_t* data() const { return data_; }

  size_t bytes() const override { return bytes_; }
  hal::DeviceAddress address() const override;
  uint8_t* host() const override { return space_ == hal::MemorySpace::kPinnedHost ? data_ : nullptr; }
  absl::Status Write(size_t offset, absl::Span<const uint8_t> from) override;
  absl::Status Read(size_t offset, absl::Span<uint8_t> to) const override;

 private:
  HostAllocation(void* mapping, size_t mapped, uint8_t* data, size_t bytes, hal::MemorySpace space)
      : mapping_(mapping), mapped_(mapped), data_(data), bytes_(bytes), space_(space) {}

  void* mapping_;
  size_t mapped_;
  uint8_t* data_;
  size_t bytes_;
  hal::MemorySpace space_;
};

}  // namespace bowline

#endif  // BOWLINE_RUNTIME_DRIVERS_HOST_HOST_ALLOCATION_H_
